# Prints the CPU seconds that tmvtnorm's Gibbs sampler takes for 1,000 draws of a ring of d columns.
suppressPackageStartupMessages(library(tmvtnorm))
d <- as.integer(commandArgs(trailingOnly = TRUE)[1])
set.seed(0)
precision <- matrix(0, d, d)
neighbour <- c(2:d, 1)
for (i in 1:d) {
  precision[i, neighbour[i]] <- precision[neighbour[i], i] <- runif(1, .3, .5)
}
diag(precision) <- max(rowSums(precision)) + .01
draw <- function() {
  rtmvnorm(1000, mean = rep(0, d), H = precision, lower = rep(0, d), algorithm = "gibbs",
           burn.in.samples = 100, thinning = 10)
}
invisible(draw())
cat(min(replicate(5, { elapsed <- system.time(draw()); elapsed[["user.self"]] + elapsed[["sys.self"]] })))

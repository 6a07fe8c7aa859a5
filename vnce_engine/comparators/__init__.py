"""Other estimators of the same networks, which VNCE is to be compared with."""

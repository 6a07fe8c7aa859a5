import time
from types import SimpleNamespace

from kombu.asynchronous.timer import Timer

from worker.queue.celery_app import create_celery
from worker.queue.replacement import replace_at_once
from worker.settings import WorkerSettings


def test_a_worker_looks_for_ended_processes_again_and_again_until_its_consumer_stops() -> None:
    app = create_celery(WorkerSettings())
    replace_at_once(app)
    (Step,) = (step for step in app.steps["consumer"] if step.__name__ == "ReplacementStep")
    looks: list[None] = []
    pool = SimpleNamespace(maintain_pool=lambda: looks.append(None))
    consumer = SimpleNamespace(timer=Timer(), pool=pool)
    step = Step(consumer)
    step.start(consumer)
    for seconds, look in consumer.timer:
        if look:
            look()
        else:
            assert seconds < 1  # Celery by itself looks every five
            time.sleep(seconds)
        if len(looks) == 3:
            step.stop(consumer)
            break
    assert all(entry.canceled for _, _, entry in consumer.timer.queue)

"""Notices are waited for beside the ticks: SQS's long polling, and no call of ours takes longer for it."""

import json
import threading

import boto3
import pytest

from ironburst.adapters.aws import waiting
from ironburst.adapters.aws.cloud import Aws
from ironburst.adapters.aws.waiting import Waiting
from ironburst.ports import CloudError, Refused
from lab.aws.testing import REGION
from lab.system import wait_for


class Queue:
    """What SQS does with a call that it holds: an answer as soon as there is one, nothing at its end."""

    def __init__(self):
        self.there, self.held, self.error, self.answered = [], [], None, 0
        self.changed = threading.Condition()

    def receive(self, seconds):
        with self.changed:
            self.held.append(seconds)
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.there or self.error, 10)
            self.answered += 1
            if self.error:
                raise self.error
            came, self.there = self.there, []
            return came

    def put(self, *messages):
        with self.changed:
            self.there += messages
            self.changed.notify_all()

    def fail(self, error):
        with self.changed:
            self.error = error
            self.changed.notify_all()

    def until_held(self, times):
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.held) >= times, 10)


@pytest.fixture
def queue():
    return Queue()


@pytest.fixture
def waits(queue):
    made = Waiting(queue.receive)
    yield made
    made.stop()
    queue.put({"last": "one"})


def within(look):
    """Look until it gives something."""
    return wait_for(look, 10.0, "something", pause=0.01)


def test_a_call_that_is_held_holds_nobody(queue, waits):
    assert waits.taken() == []
    queue.until_held(1)
    assert waits.taken() == []
    assert queue.held == [waiting.LONGEST_S] and not queue.answered


def test_each_message_is_given_once(queue, waits):
    waits.taken()
    queue.until_held(1)
    queue.put({"n": 1}, {"n": 2})
    queue.until_held(2)  # it waits again
    assert waits.taken() == [{"n": 1}, {"n": 2}]
    assert waits.taken() == []
    queue.put({"n": 3})
    assert within(waits.taken) == [{"n": 3}]


def test_an_error_is_said_once_and_then_it_is_asked_again(queue, waits):
    waits.taken()
    queue.until_held(1)
    queue.fail(Refused("no such queue", "AWS.SimpleQueueService.NonExistentQueue"))

    def failed():
        try:
            waits.taken()
        except CloudError as error:
            return error

    assert within(failed).code == "AWS.SimpleQueueService.NonExistentQueue"
    queue.fail(None)
    waits.taken()
    queue.put({"n": 1})
    assert within(waits.taken) == [{"n": 1}]


def test_nobody_who_asks_no_more_receives_anything(queue, monkeypatch):
    monkeypatch.setattr(waiting, "FORGOTTEN_S", 0.0)
    made = Waiting(queue.receive)
    made.taken()
    queue.put({"n": 1})
    within(lambda: made._thread is None)
    queue.put({"n": 2})
    assert queue.there == [{"n": 2}] and len(queue.held) == 1


def test_the_notices_of_a_queue_come_by_a_call_that_sqs_holds(cloud, clients, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", cloud.url)
    aws = Aws(REGION, boto3.Session("lab", "lab", region_name=REGION), waits=True)
    sqs = clients("sqs")
    url = sqs.create_queue(QueueName="q")["QueueUrl"]

    def warn(instance):
        warning = {"detail-type": "EC2 Spot Instance Interruption Warning", "detail": {"instance-id": instance}}
        sqs.send_message(QueueUrl=url, MessageBody=json.dumps(warning))

    warn("i-1")
    assert [each.instance_id for each in aws.interruptions([url])] == ["i-1"]  # who asks once isn't waited for
    assert aws.interruptions([url]) == []
    warn("i-2")
    (notice,) = within(lambda: aws.interruptions([url]))
    assert notice.instance_id == "i-2"
    aws.acknowledge(notice)
    aws._waiting[url].stop()

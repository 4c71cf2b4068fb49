"""Messages to a real server: taken, refused, hanging, redirected; and nothing of a URL in what is said of it."""

from concurrent.futures import ThreadPoolExecutor

from bench_pipeline.providers.messenger import Delivery, Message, deliver
from bench_pipeline_tests.listening import listening

BOTH = [Message("first", "a <b> & *c*", bad=True), Message("second", "d", bad=False)]
LONG_S = 200.0


def delivered(*urls: str) -> list[Delivery]:
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda url: deliver(url, BOTH, LONG_S), urls))


def test_messages_arrive_in_their_order_as_plain_text() -> None:
    with listening() as listener:
        assert delivered(listener.url("ok")) == [Delivery(2)]
    assert [(each["title"], each["message"], each["type"]) for each in listener.taken] == [
        ("first", "a <b> & *c*", "failure"),
        ("second", "d", "success"),
    ]


def test_a_target_that_does_not_take_a_message_is_named_by_what_it_did_and_never_by_its_url() -> None:
    with listening() as listener:
        paths = ("broken", "away", "hang")
        found = delivered(*map(listener.url, paths), "hush-hush-secret", "nosuch://hush-hush-secret@there")
    assert found == [
        Delivery(0, "the server answered 500"),
        Delivery(0, "the server answered 302"),
        Delivery(0, "no connection, or no answer"),
        Delivery(0, "it is no URL that Apprise knows"),
        Delivery(0, "it is no URL that Apprise knows"),
    ]
    assert sorted(listener.asked) == ["/away", "/broken", "/hang"], "nobody is asked twice, and nobody else"


def test_a_process_that_sends_for_too_long_is_ended() -> None:
    with listening() as listener:
        found = deliver(listener.url("hang").replace("0.5", "500"), BOTH, at_most_s=1.0)
    assert found == Delivery(0, "no answer within 1 s")

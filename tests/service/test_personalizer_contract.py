"""Microsoft's own client of Azure Personalizer, unmodified, against a server in its own process.

Only the endpoint differs from what its users have. The client knows rank, reward and activate; what
other clients of Personalizer call besides is sent through its pipeline, with its credentials.
"""

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra `serve` is not installed")
pytest.importorskip(
    "azure.cognitiveservices.personalizer", reason="Microsoft's client is not installed"
)

from azure.cognitiveservices.personalizer import PersonalizerClient, models
from msrest.authentication import CognitiveServicesCredentials
from msrest.exceptions import HttpOperationError
from running import ADMINISTRATOR, running

from discreet.client import Client

pytestmark = pytest.mark.filterwarnings("ignore")  # what Microsoft's libraries use is deprecated


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service that runs, as one command starts it."""
    with running(tmp_path_factory.mktemp("service")) as address:
        yield address


@pytest.fixture(scope="module")
def service(url: str) -> Iterator[Client]:
    with Client(url, ADMINISTRATOR, bandit="shop") as client:
        client.create_bandit(
            "shop",
            epsilon=1.0,
            delta=1e-6,
            horizon=100_000,
            reward={"low": -1.0, "high": 1.0, "wait_seconds": 600.0},
        )
        yield client


@pytest.fixture(scope="module")
def key(service: Client) -> str:
    return service.create_key("loop", ["rank", "reward"], bandit="shop").key


def personalizer(endpoint: str, key: str) -> Any:
    return PersonalizerClient(endpoint, CognitiveServicesCredentials(key))


@pytest.fixture
def client(url: str, key: str) -> Any:
    return personalizer(f"{url}/bandits/shop", key)


def request(**fields: Any) -> Any:
    actions = [
        models.RankableAction(id="NewsArticle", features=[{"type": "News"}, {"length": 3}]),
        models.RankableAction(id="SportsArticle", features=[{"type": "Sports"}]),
        models.RankableAction(id="EntertainmentArticle", features=[{"type": "Entertainment"}]),
    ]
    context = [{"timeOfDay": "Morning"}, {"user": {"age": "young"}}]
    return models.RankRequest(**{"actions": actions, "context_features": context, **fields})


def test_rank_gives_an_action_to_show_and_probabilities_that_add_up(client: Any) -> None:
    found = client.rank(request(event_id="75269AD0-BFEE-4598-8196-C57383D38E10"))
    assert found.event_id == "75269AD0-BFEE-4598-8196-C57383D38E10"
    assert found.reward_action_id == found.ranking[0].id
    ids = [one.id for one in found.ranking]
    assert sorted(ids) == ["EntertainmentArticle", "NewsArticle", "SportsArticle"]
    assert sum(one.probability for one in found.ranking) == pytest.approx(1.0)


def test_rank_makes_up_an_event_id_and_excludes_actions_in_their_places(client: Any) -> None:
    for _ in range(10):
        found = client.rank(request(excluded_actions=["NewsArticle"]))
        assert found.event_id
        assert (found.ranking[0].id, found.ranking[0].probability) == ("NewsArticle", 0.0)
        assert found.reward_action_id == found.ranking[1].id
        assert sum(one.probability for one in found.ranking) == pytest.approx(1.0)


def test_a_rank_that_is_repeated_is_one_event(client: Any, service: Client) -> None:
    first = client.rank(request(event_id="again"))
    before = service.bandit().events
    second = client.rank(request(event_id="again"))
    assert second.serialize() == first.serialize()
    assert second.reward_action_id == first.reward_action_id
    assert [(one.id, one.probability) for one in second.ranking] == [
        (one.id, one.probability) for one in first.ranking
    ]
    assert service.bandit().events == before
    with pytest.raises(models.ErrorResponseException) as caught:
        client.rank(request(event_id="again", context_features=[{"timeOfDay": "Evening"}]))
    assert caught.value.response.status_code == 409
    assert caught.value.error.error.inner_error.code == "EventExists"


def test_a_reward_is_taken_in_and_a_second_one_too(client: Any) -> None:
    event = client.rank(request()).event_id
    raw = client.events.reward(event, 0.5, raw=True)
    assert raw.response.status_code == 204
    client.events.reward(event_id=event, value=-1)


def test_a_deferred_event_is_activated(client: Any) -> None:
    event = client.rank(request(defer_activation=True)).event_id
    assert client.events.activate(event, raw=True).response.status_code == 204


def test_an_event_id_may_have_a_slash_and_the_endpoint_one_at_its_end(url: str, key: str) -> None:
    client = personalizer(f"{url}/bandits/shop/", key)
    event = client.rank(request(event_id="a/b?c#d%e")).event_id
    assert event == "a/b?c#d%e"
    assert client.events.reward(event, 1.0, raw=True).response.status_code == 204
    assert client.events.activate(event, raw=True).response.status_code == 204


def test_an_error_becomes_an_exception_with_its_code_and_message(client: Any) -> None:
    for wrong, target in (
        ({"actions": []}, "actions"),
        ({"excluded_actions": ["NewsArticle", "SportsArticle", "EntertainmentArticle"]}, None),
        ({"event_id": "has a space"}, "eventId"),
        ({"context_features": ["text"]}, "contextFeatures[0]"),
    ):
        with pytest.raises(models.ErrorResponseException) as caught:
            client.rank(request(**wrong))
        error = caught.value.error.error
        assert caught.value.response.status_code == 400
        assert error.code == models.ErrorCode.bad_request
        assert error.inner_error.code == "InvalidRankRequest"
        assert error.message
        assert error.target == target


def told(caught: pytest.ExceptionInfo[HttpOperationError]) -> dict[str, Any]:
    """The error that the service sent; the client reads it for rank only."""
    found: dict[str, Any] = caught.value.response.json()["error"]
    return found


def test_rewards_and_activations_that_cannot_be_are_refused(client: Any) -> None:
    for call in (
        lambda: client.events.reward("nothing-like-it", 1.0),
        lambda: client.events.activate("nothing-like-it"),
        lambda: client.events.activate("not an id"),
    ):
        with pytest.raises(HttpOperationError) as caught:
            call()
        assert caught.value.response.status_code == 404
        assert told(caught)["code"] == "ResourceNotFound"
        assert told(caught)["innerError"]["code"] == "EventNotFound"
    event = client.rank(request()).event_id
    with pytest.raises(HttpOperationError) as caught:
        client.events.reward(event, 1.5)
    assert told(caught) == {
        "code": "BadRequest",
        "message": "value must be from -1 to 1.",
        "target": "value",
        "innerError": {"code": "InvalidRewardRequest"},
    }


def test_a_wrong_key_and_a_wrong_bandit_are_refused(url: str, service: Client) -> None:
    with pytest.raises(models.ErrorResponseException) as caught:
        personalizer(f"{url}/bandits/shop", "wrong").rank(request())
    assert caught.value.response.status_code == 401
    assert caught.value.error.error.code == "Unauthorized"
    with pytest.raises(models.ErrorResponseException) as caught:
        personalizer(f"{url}/bandits/none", ADMINISTRATOR).rank(request())
    assert caught.value.error.error.code == models.ErrorCode.resource_not_found
    assert caught.value.error.error.inner_error.code == "BanditNotFound"
    reader = service.create_key("reader", ["read"]).key
    with pytest.raises(models.ErrorResponseException) as caught:
        personalizer(f"{url}/bandits/shop", reader).rank(request())
    assert (caught.value.response.status_code, caught.value.error.error.code) == (403, "Forbidden")


def send(client: Any, method: str, path: str, body: Any = None) -> Any:
    """A call that this client has no method for, through its own pipeline and credentials."""
    where = client._client.format_url(path, Endpoint=client.config.endpoint)
    made = getattr(client._client, method)(where, {}, {"Accept": "application/json"}, body)
    return client._client.send(made, stream=False)


def test_the_service_configuration_is_read_changed_and_applied(url: str, service: Client) -> None:
    client = personalizer(f"{url}/bandits/shop", ADMINISTRATOR)
    path = "/configurations/service"
    shown = send(client, "get", path)
    assert shown.status_code == 200
    configuration = shown.json()
    assert configuration["rewardWaitTime"] == "PT10M"
    assert configuration["rewardAggregation"] == "earliest"
    changed = {**configuration, "rewardWaitTime": "00:20:00", "defaultReward": -0.5}
    answer = send(client, "put", path, {**changed, "rewardAggregation": "sum"})
    assert answer.status_code == 200
    assert answer.json() == send(client, "get", path).json()
    assert answer.json()["rewardWaitTime"] == "PT20M"
    reward = service.bandit().reward
    assert (reward["wait_seconds"], reward["default"], reward["aggregation"]) == (1200, -0.5, "sum")
    assert send(client, "put", path, configuration).json() == configuration


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("explorationPercentage", 0.2),
        ("logRetentionDays", 90),
        ("rewardWaitTime", "soon"),
        ("defaultReward", 7.0),
        ("rewardAggregation", "mean"),
        ("somethingElse", 1),
    ],
)
def test_a_configuration_that_cannot_be_is_refused_and_changes_nothing(
    url: str, service: Client, name: str, value: object
) -> None:
    before = service.bandit().reward
    client = personalizer(f"{url}/bandits/shop", ADMINISTRATOR)
    answer = send(
        client,
        "put",
        "/configurations/service",
        {name: value, "defaultReward": 0.25} | {name: value},
    )
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["code"] == "BadRequest"
    assert error["innerError"]["code"] == "InvalidServiceConfiguration"
    assert service.bandit().reward == before


def test_a_key_of_the_loop_cannot_change_the_configuration(client: Any) -> None:
    answer = send(client, "put", "/configurations/service", {"defaultReward": 0.0})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "Forbidden")


def test_model_and_policy_can_be_looked_at(url: str, service: Client) -> None:
    client = personalizer(f"{url}/bandits/shop", ADMINISTRATOR)
    policy = send(client, "get", "/configurations/policy").json()
    assert policy["name"] == service.bandit().policy["rule"]
    assert set(send(client, "get", "/model/properties").json()) == {
        "creationTime",
        "lastModifiedTime",
    }
    assert send(client, "get", "/model").json()["digest"] == service.bandit().release["digest"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("get", "/evaluations"),
        ("post", "/evaluations"),
        ("get", "/evaluations/some-id"),
        ("delete", "/logs"),
        ("get", "/logs/properties"),
        ("delete", "/model"),
        ("put", "/configurations/policy"),
        ("post", "/multislot/rank"),
    ],
)
@pytest.mark.usefixtures("service")
def test_what_does_not_exist_here_says_so(url: str, method: str, path: str) -> None:
    client = personalizer(f"{url}/bandits/shop", ADMINISTRATOR)
    answer = send(client, method, path, {} if method in {"post", "put"} else None)
    assert answer.status_code == 501
    assert answer.json()["error"]["code"] == "OperationNotAllowed"


@pytest.mark.usefixtures("service")
def test_clients_that_do_not_tidy_up_the_slashes_of_their_endpoint_are_served(url: str) -> None:
    client = personalizer(url, ADMINISTRATOR)
    answer = send(client, "get", f"{url}/bandits/shop//personalizer/v1.0/configurations/service")
    assert answer.status_code == 200


@pytest.mark.usefixtures("service")
def test_what_is_no_route_of_personalizer_is_an_error_in_its_form(url: str) -> None:
    client = personalizer(f"{url}/bandits/shop", ADMINISTRATOR)
    assert send(client, "get", "/rank").status_code == 405
    assert send(client, "get", "/nothing").status_code == 404
    client._client.config.base_url = "{Endpoint}/personalizer/v2.0"
    answer = send(client, "post", "/rank", {})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "ResourceNotFound")

"""Data sets over HTTP."""

import hashlib
import json
from base64 import b64encode
from urllib.parse import unquote

import pytest
from fastapi.testclient import TestClient

from service.app import create_app
from service.datasets.repository import load_table
from service.db.database import Database
from service.db.tenant_names import DEFAULT_TENANT
from service.jobs.records import JobRecord
from service.settings import Authentication, Settings

TABLE = b"a,b,c\n1.5,2,<0.5\n,4,6\n7,NA,9\n"


def upload(client: TestClient, content: bytes = TABLE, **parameters: object) -> dict:
    answer = client.post("/v1/datasets", params=parameters, content=content)
    assert answer.status_code == 201, answer.text
    return answer.json()


def count_rows(settings: Settings) -> dict[str, int]:
    database = Database(settings.database_url).of(DEFAULT_TENANT)
    with database.snapshot() as session:
        tables = ("datasets", "blobs", "blob_chunks", "ground_truths")
        counts = {
            table: session.connection().exec_driver_sql(f"SELECT count(*) FROM {table}").scalar()
            for table in tables
        }
    database.dispose()
    return counts


def test_an_upload_is_created_with_its_address_and_hash(client):
    answer = client.post("/v1/datasets?name=trial.csv", content=TABLE)
    sha256 = hashlib.sha256(TABLE).hexdigest()
    document = answer.json()
    assert answer.status_code == 201
    assert answer.headers["etag"] == f'"{sha256}"'
    assert answer.headers["location"] == f"/v1/datasets/{document['id']}"
    assert (document["name"], document["sha256"], document["size"]) == (
        "trial.csv",
        sha256,
        len(TABLE),
    )
    assert client.get(answer.headers["location"]).json() == document


def test_jobs_read_the_numbers_cells_and_truth_that_were_stored(client, settings):
    dataset = upload(client)
    client.put(
        f"/v1/datasets/{dataset['id']}/ground-truth",
        json={"kind": "edges", "edges": [{"source": "c", "target": "a"}]},
    )
    database = Database(settings.database_url).of(DEFAULT_TENANT)
    with database.snapshot() as session:
        stored = load_table(session, dataset["id"])
    database.dispose()
    assert stored.table.to_pydict() == {"a": [1.5, None, 7], "b": [2, 4, None], "c": [None, 6, 9]}
    assert stored.cells.to_pylist() == [
        {"row": 1, "column": "c", "text": "<0.5", "lower": None, "upper": 0.5}
    ]
    assert stored.texts is not None
    assert list(stored.texts(["c", "a"])) == [["<0.5", "1.5"], ["6", ""], ["9", "7"]]
    assert stored.ground_truth == [["a", "c"]]
    assert stored.sha256 == dataset["sha256"]


@pytest.mark.parametrize(
    "media_type",
    ["text/csv", "application/vnd.ms-excel", "application/octet-stream", "text/plain", "x", None],
)
def test_the_content_and_not_its_label_decides(client, media_type):
    headers = {} if media_type is None else {"Content-Type": media_type}
    content = b'\xef\xbb\xbf"alpha","beta"\n1.0,2.0\n1.2,\n'
    answer = client.post("/v1/datasets", content=content, headers=headers)
    assert answer.status_code == 201
    assert [column["name"] for column in answer.json()["summary"]["columns"]] == ["alpha", "beta"]


def test_a_refused_upload_leaves_nothing(client, settings):
    answer = client.post("/v1/datasets", content=b"a,b\n1,x\n")
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "unreadable-dataset"
    (item,) = answer.json()["errors"]
    assert (item["column"], item["row"], item["cell"], item["line"]) == ("b", 1, "x", 2)
    assert not any(count_rows(settings).values())


def test_a_preview_says_the_same_and_stores_nothing(client, settings):
    preview = client.post("/v1/datasets:preview", content=TABLE)
    assert preview.status_code == 200
    assert preview.json()["first_rows"] == [[1.5, 2, None], [None, 4, 6], [7, None, 9]]
    assert not any(count_rows(settings).values())
    assert preview.json()["summary"] == upload(client)["summary"]


@pytest.mark.parametrize(
    "parameters",
    [
        {"sep": ";"},
        {"format": "xlsx"},
        {"delimiter": "x"},
        {"decimal": ";"},
        {"encoding": "idna"},
        {"skip_rows": -1},
        {"units_row": "perhaps"},
        {"name": ""},
        {"name": "  "},
        {"name": "a\0b"},
        {"name": "n" * 5000},
    ],
)
def test_an_option_that_is_unknown_or_out_of_range_is_refused_by_name(client, parameters):
    answer = client.post("/v1/datasets", params=parameters, content=TABLE)
    assert answer.status_code == 422
    assert [item["parameter"] for item in answer.json()["errors"]] == list(parameters)


def test_options_are_passed_on(client):
    content = "titel\nx;y\nkg;m\n1,5;-9\n".encode("cp1252")
    dataset = upload(
        client,
        content,
        format="csv",
        delimiter="semicolon",
        decimal=",",
        encoding="cp1252",
        skip_rows=1,
        units_row=True,
        na_values=["?", "-9"],
    )
    x, y = dataset["summary"]["columns"]
    assert (x["mean"], x["unit"], y["n_missing"]) == (1.5, "kg", 1)


def test_a_workbook_is_refused_as_such(client):
    answer = client.post("/v1/datasets", content=b"PK\x03\x04 xl/workbook.xml")
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported-media-type")


def test_pages_list_every_data_set_once_newest_first(client):
    ids = [upload(client, name=f"set {i}")["id"] for i in range(5)]
    seen, cursor = [], None
    while True:
        parameters = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = client.get("/v1/datasets", params=parameters).json()
        seen += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
        upload(client, name="newer than the pages")
    assert seen == ids[::-1]


@pytest.mark.parametrize("parameters", [{"cursor": "?"}, {"limit": 0}, {"limit": 101}])
def test_a_bad_page_is_refused(client, parameters):
    answer = client.get("/v1/datasets", params=parameters)
    assert answer.status_code == 422
    assert [item["parameter"] for item in answer.json()["errors"]] == list(parameters)


@pytest.mark.parametrize("path", ["", "/content", "/ground-truth"])
def test_an_unknown_data_set_is_not_found(client, path):
    answer = client.get(f"/v1/datasets/dataset_0{path}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")


def test_the_content_comes_back_byte_for_byte_once(client):
    padding = b" " * 100_000
    content = b"a,b\r\n" + (b"1," + padding + b"2\r\n") * 25  # more than two chunks
    dataset = upload(client, content)
    path = f"/v1/datasets/{dataset['id']}/content"
    answer = client.get(path)
    assert answer.content == content
    assert answer.headers["content-length"] == str(len(content))
    assert answer.headers["x-content-type-options"] == "nosniff"
    again = client.get(path, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.head(path).headers["content-length"] == str(len(content))


@pytest.mark.parametrize(
    ("name", "saved"),
    [
        ("水质 2031.csv", "水质 2031.csv"),
        ("naïve ✓.csv", "naïve ✓.csv"),
        ('quoted";x=1.csv', "quoted_;x=1.csv"),
        ("../../etc/passwd", "passwd.csv"),
        ("C:\\data\\run.csv", "run.csv"),
        ("CON.csv", "_CON.csv"),
        ("two\r\nlines.csv", "two__lines.csv"),
        ("n" * 300 + ".csv", "n" * 60 + ".csv"),
        ("...", "dataset.csv"),
        ("table.TSV", "table.TSV"),
    ],
)
def test_any_name_is_stored_and_none_breaks_out_of_its_header(client, name, saved):
    dataset = upload(client, name=name)
    assert dataset["name"] == name
    answer = client.get(f"/v1/datasets/{dataset['id']}/content")
    assert answer.status_code == 200
    header = answer.headers["content-disposition"]
    start, _, rest = header.partition('; filename="')
    fallback, _, exact = rest.partition("\"; filename*=UTF-8''")
    assert start == "attachment"
    assert fallback.isascii()
    assert '"' not in fallback
    assert unquote(exact) == saved


def test_a_deleted_data_set_leaves_nothing(client, settings):
    dataset = upload(client)
    path = f"/v1/datasets/{dataset['id']}"
    client.put(f"{path}/ground-truth", json={"kind": "edges", "edges": []})
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404
    assert not any(count_rows(settings).values())


def test_a_data_set_stays_while_jobs_refer_to_it(client, settings):
    dataset = upload(client)
    database = Database(settings.database_url).of(DEFAULT_TENANT)
    with database.transaction() as session:
        for number in range(2):
            session.add(
                JobRecord(
                    id=f"job_{number}",
                    kind="estimation",
                    spec={},
                    dataset_id=dataset["id"],
                    max_attempts=3,
                )
            )
    database.dispose()
    answer = client.delete(f"/v1/datasets/{dataset['id']}")
    assert (answer.status_code, answer.json()["code"]) == (409, "dataset-in-use")
    assert f"/v1/jobs?dataset_id={dataset['id']}" in answer.json()["detail"]
    assert client.get(f"/v1/datasets/{dataset['id']}").status_code == 200


@pytest.mark.parametrize("algorithm", ["sha-256", "sha-512"])
@pytest.mark.parametrize("header", ["Content-Digest", "Repr-Digest"])
def test_a_digest_is_verified(client, settings, header, algorithm):
    digest = b64encode(hashlib.new(algorithm.replace("-", ""), TABLE).digest()).decode()
    headers = {header: f"md5=:AAAA:, {algorithm}=:{digest}:"}
    assert client.post("/v1/datasets:preview", content=TABLE, headers=headers).status_code == 200
    cut = client.post("/v1/datasets", content=TABLE[:-1], headers=headers)
    assert (cut.status_code, cut.json()["code"]) == (422, "validation-failed")
    assert not any(count_rows(settings).values())


@pytest.mark.parametrize("value", ["sha-256", "sha-256=:!:", 'sha-256="AAAA"'])
def test_a_digest_that_cannot_be_read_is_refused(client, value):
    headers = {"Content-Digest": value}
    answer = client.post("/v1/datasets:preview", content=TABLE, headers=headers)
    assert answer.status_code == 422


def test_a_content_coding_is_refused(client):
    headers = {"Content-Encoding": "gzip"}
    answer = client.post("/v1/datasets", content=TABLE, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported-media-type")


def test_an_announced_body_above_the_limit_is_refused_unread(sqlite_url):
    settings = Settings(
        database_url=sqlite_url, max_body_bytes=100, authentication=Authentication.NONE
    )
    with TestClient(create_app(settings)) as client:
        answer = client.post("/v1/datasets", content=b"a" * 101)
    assert (answer.status_code, answer.json()["code"]) == (413, "payload-too-large")
    assert "100 bytes" in answer.json()["detail"]
    assert answer.headers["connection"] == "close"


@pytest.mark.slow
def test_long_tables_survive_json_and_the_openapi_names_the_binary_body(client):
    document = client.get("/openapi.json").json()
    assert document["paths"]["/v1/datasets"]["post"]["operationId"] == "create_dataset"
    body = document["components"]["requestBodies"]["create_dataset"]
    assert list(body["content"]) == ["application/octet-stream"]


def test_no_number_of_a_summary_is_nan(client):
    largest = "1.7976931348623157e308"
    content = f"a,b\n{largest},-{largest}\n{largest},\n-{largest},1\n".encode()
    answer = client.post("/v1/datasets", content=content)
    assert answer.status_code == 201

    def refuse(constant: str) -> None:
        pytest.fail(f"{constant} is not JSON")

    json.loads(answer.text, parse_constant=refuse)


FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def test_a_form_is_answered_by_how_to_send_the_bytes(client):
    answer = client.post("/v1/datasets", files={"file": ("table.csv", TABLE)})
    assert answer.status_code == 415
    assert "--data-binary" in answer.json()["detail"]


def test_lines_that_curl_has_joined_are_answered_by_how_to_send_them(client):
    joined = TABLE.replace(b"\n", b"")
    answer = client.post("/v1/datasets", content=joined, headers=FORM)
    assert answer.status_code == 415
    assert "--data-binary" in answer.json()["detail"]
    # As `--data-binary` sends it, of the same type.
    assert client.post("/v1/datasets", content=TABLE, headers=FORM).status_code == 201


def test_a_file_of_one_line_in_another_format_is_read_whatever_curl_calls_it(client):
    rows = [{"a": row, "b": row * 2 % 7, "c": row * 3 % 5} for row in range(20)]
    content = b" \t" + json.dumps(rows).encode()
    assert client.post("/v1/datasets", content=content, headers=FORM).status_code == 201

"""Contents of responses."""

import csv
import html
import io
import json
import re


def text_of(answer):
    """Return the body as text, streamed or not."""
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return body.decode()


def words_of(answer):
    """Return the visible text of a page, with single blanks."""
    body = re.sub(r"<(script|style)\b.*?</\1>|<!--.*?-->", " ", text_of(answer), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def json_of(answer):
    """Return the body of a JSON export."""
    return json.loads(text_of(answer))


def csv_of(answer):
    """Return the rows of a CSV export."""
    return list(csv.DictReader(io.StringIO(text_of(answer), newline="")))

# Makes JSON of parts of messages that hold large texts: a picture, or what a cell has printed. Python's own way looks at each
# character by itself, for 15 ms in a picture of 5 MB.
import json
import json.encoder

LARGE_TEXT = 1 << 14  # characters from which on it pays
SHORT_ESCAPES = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))
OTHERS = [code for code in range(0x20) if chr(code) not in "\n\r\t"]  # which JSON escapes in another way, and hardly a text holds


def quote(text, escape=json.encoder.encode_basestring):
    if len(text) < LARGE_TEXT:
        return escape(text)
    escaped = str.__str__(text)  # a class made of str may have a replace of its own: markupsafe's escapes what it is given
    for character, short in SHORT_ESCAPES:
        if character in escaped:  # which the processor finds out by many bytes at a time; replacing counts them one by one
            escaped = escaped.replace(character, short)
    raw = escaped.encode("utf8", "surrogatepass")
    if any(code in raw for code in OTHERS):
        return escape(text)
    return f'"{escaped}"'


def holds_large_text(part):
    texts = list(part.values())
    if isinstance(part.get("data"), dict):
        texts += part["data"].values()
    return any(isinstance(text, str) and len(text) >= LARGE_TEXT for text in texts)


class LargeTextEncoder(json.JSONEncoder):
    # What it makes is what json.JSONEncoder makes that escapes no more than it must.
    def iterencode(self, o, _one_shot=False):
        make = json.encoder.c_make_encoder
        if not make:
            return super().iterencode(o, _one_shot)
        return make({}, self.default, quote, self.indent, self.key_separator, self.item_separator, self.sort_keys, self.skipkeys, self.allow_nan)(o, 0)

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
    return any_large(part.values()) or isinstance(data := part.get("data"), dict) and any_large(data.values())


def any_large(texts):
    for text in texts:  # any() takes three times as long, for each part of each message
        if isinstance(text, str) and len(text) >= LARGE_TEXT:
            return True
    return False


def encoder(quote, **style):
    # Makes what json.JSONEncoder makes of a style; that prepares itself anew for each part. What holds itself is a RecursionError.
    plain, make = json.JSONEncoder(**style), json.encoder.c_make_encoder
    if not make:
        return plain.encode
    pieces = make(None, plain.default, quote, plain.indent, plain.key_separator, plain.item_separator, plain.sort_keys, plain.skipkeys, plain.allow_nan)
    return lambda part: "".join(pieces(part, 0))

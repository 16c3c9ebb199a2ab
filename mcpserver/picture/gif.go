package picture

// gifPictures counts the pictures of a GIF, as far as it can be read (GIF89a, appendix B): an animation has several, of which a model
// sees the first.
func gifPictures(raw []byte) (n int) {
	const header, descriptor = 13, 10 // bytes; the last of a descriptor and the 11th of the header are flags
	if len(raw) < header {
		return 0
	}
	for at := header + gifTable(raw[10]); at < len(raw); {
		switch {
		case raw[at] == '!': // an extension, and its label
			at = behindBlocks(raw, at+2)
		case raw[at] == ',' && at+descriptor <= len(raw):
			n++
			at = behindBlocks(raw, at+descriptor+gifTable(raw[at+descriptor-1])+1)
		default:
			return n
		}
	}
	return n
}

// gifTable is the length of the table of colours that flags tell of.
func gifTable(flags byte) int {
	if flags&0x80 == 0 {
		return 0
	}
	return 3 << (flags&7 + 1)
}

// behindBlocks is where a sequence of blocks ends that begins at a place.
func behindBlocks(raw []byte, at int) int {
	for at < len(raw) && raw[at] != 0 {
		at += int(raw[at]) + 1
	}
	return at + 1
}

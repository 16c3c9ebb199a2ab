package mcpserver

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"slices"

	"cellblock/internal/filetype"
	"cellblock/internal/words"
)

// leastShare is what an image may take of a result however many there are, in bytes of base64: of a plot that were made smaller
// little could be read. The last of very many are left out instead.
const leastShare = 64_000

// share is how much the first of some images may take of a room, so that those behind it have theirs, too: what the small ones do
// not need goes to the large. Sizes are what they would take as they are, in bytes of base64.
func share(room int, sizes []int) int {
	left := room
	sorted := slices.Sorted(slices.Values(sizes))
	for i, size := range sorted {
		if each := left / (len(sorted) - i); size > each {
			return min(max(each, leastShare), room)
		}
		left -= size
	}
	return room
}

// imageForm is the form of a bundle that is shown as an image, nil if it has none.
func imageForm(data mimeBundle) json.RawMessage { return data[firstOf(data, filetype.Images...)] }

// imageSizes returns what each image of the area would take as it is, in order, without those that an earlier item has shown
// already. Of these it notes how often they come in a row: a figure that is shown, and is then the cell's value, costs a model as
// much again, and says nothing.
func (a *area) imageSizes() (sizes []int) {
	seed, seen := maphash.MakeSeed(), map[uint64]json.RawMessage{}
	var row *item // the first of the repetitions before this item
	for _, it := range a.items {
		form := imageForm(it.out.Data)
		sum := maphash.Bytes(seed, form)
		if again := form != nil && bytes.Equal(seen[sum], form); !again {
			it.again, row = 0, nil
		} else if row == nil {
			it.again, row = 1, it
		} else {
			it.again, row.again = inRow, row.again+1
		}
		if form != nil && it.again == 0 {
			seen[sum] = form
			sizes = append(sizes, min(max(len(form), minRoom), maxImage))
		}
	}
	return sizes
}

// inRow is item.again of one that an earlier item tells of.
const inRow = -1

// againNote tells of images that come again.
func againNote(n int) string {
	if n == 1 {
		return "[the same image again]"
	}
	return "[" + words.Count(int64(n), "image") + " of before again]"
}

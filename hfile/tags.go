package hfile

import (
	"encoding/binary"
	"iter"

	"github.com/oribi-db/oribi/internal/fault"
)

// Tags of a cell, back to back. Source: hfile spec §5.6.
//
//	offset  width     field   meaning
//	0       2         length  of type and value, big-endian, at least 1
//	2       1         type
//	3       length-1  value
//
// Type 8, value "ab": 00 03 08 61 62
//
// In blocks with a dictionary, a tag is either ff, its length as an unsigned varint, and type and
// value, which enters the dictionary, or its index there in two bytes, big-endian. The dictionary
// is empty at the start of a block and has 127 places. A new tag takes the next free place, then
// the place of the least recently used tag.
const (
	tagLengthLen = 2    // file format: never change
	tagHeaderLen = 3    // file format: never change; length and type
	tagNew       = 0xff // file format: never change
	maxTags      = 127  // file format: never change
)

// Tag is a tag of a cell. Types below 64 are HBase's own.
type Tag struct {
	Type  uint8
	Value []byte
}

// AppendTag appends a tag in the form of Cell.Tags. Type and value have at most 65535 bytes.
func AppendTag(dst []byte, t Tag) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(1+len(t.Value)))
	dst = append(dst, t.Type)
	return append(dst, t.Value...)
}

// Tags returns the tags in b, which has the form of Cell.Tags. Values alias b. The iteration ends
// with ErrCorrupt if b is malformed.
func Tags(b []byte) iter.Seq2[Tag, error] {
	return func(yield func(Tag, error) bool) {
		for rest := b; len(rest) > 0; {
			tag, after, ok := cutTag(rest)
			if !ok {
				yield(Tag{}, fault.Corruptf("hfile: tags: %d bytes left, the next tag does not fit", len(rest)))
				return
			}
			if !yield(Tag{tag[0], tag[1:]}, nil) {
				return
			}
			rest = after
		}
	}
}

// cutTag cuts the first tag off tags: its type and value. ok is false if tags does not begin with a
// whole tag.
func cutTag(tags []byte) (tag, rest []byte, ok bool) {
	n := 0
	if len(tags) >= tagHeaderLen {
		n = tagLengthLen + int(binary.BigEndian.Uint16(tags))
	}
	if n < tagHeaderLen || n > len(tags) {
		return nil, nil, false
	}
	return tags[tagLengthLen:n:n], tags[n:], true
}

// checkTags reports whether b has the form of Cell.Tags.
func checkTags(b []byte) bool {
	for ok := true; len(b) > 0; {
		if _, b, ok = cutTag(b); !ok {
			return false
		}
	}
	return true
}

// tagDictionary is the dictionary of the tags in one block. It is a list from the most to the least
// recently used tag.
type tagDictionary struct {
	n           int
	first, last uint8
	tags        [maxTags]dictionaryTag
}

// dictionaryTag is a tag: its type and value are bytes [from, to) of the payload.
type dictionaryTag struct {
	from, to     int
	newer, older uint8 // its neighbors in the list
}

func (d *tagDictionary) reset() { d.n = 0 }

// add enters a tag.
func (d *tagDictionary) add(from, to int) {
	i := d.last
	if d.n < maxTags {
		i = uint8(d.n)
		d.n++
		d.push(i)
	} else {
		d.use(i)
	}
	d.tags[i].from, d.tags[i].to = from, to
}

// use makes tag i the most recently used tag.
func (d *tagDictionary) use(i uint8) {
	if i == d.first {
		return
	}
	t := &d.tags[i]
	d.tags[t.newer].older = t.older
	if i == d.last {
		d.last = t.newer
	} else {
		d.tags[t.older].newer = t.newer
	}
	t.older = d.first
	d.tags[d.first].newer = i
	d.first = i
}

// push makes tag i, which is new in the list, the most recently used tag.
func (d *tagDictionary) push(i uint8) {
	if i == 0 {
		d.last = 0
	} else {
		d.tags[i].older = d.first
		d.tags[d.first].newer = i
	}
	d.first = i
}

// expand appends the tags at b[p:] to dst, up to n bytes of them in the form of Cell.Tags. It
// returns the offset after them, or 0 if they are malformed.
func (d *tagDictionary) expand(dst, b []byte, p, n int) ([]byte, int) {
	for len(dst) < n {
		if p >= len(b) {
			return dst, 0
		}
		var from, to int
		if b[p] == tagNew {
			length, q := cint(b, p+1)
			if q == 0 || length == 0 || length > len(b)-q {
				return dst, 0
			}
			from, to = q, q+length
			p = to
			d.add(from, to)
		} else {
			if len(b)-p < tagLengthLen {
				return dst, 0
			}
			i := int(binary.BigEndian.Uint16(b[p:]))
			if i >= d.n {
				return dst, 0
			}
			p += tagLengthLen
			d.use(uint8(i))
			from, to = d.tags[i].from, d.tags[i].to
		}
		if to-from > n-len(dst)-tagLengthLen {
			return dst, 0
		}
		dst = binary.BigEndian.AppendUint16(dst, uint16(to-from))
		dst = append(dst, b[from:to]...)
	}
	return dst, p
}

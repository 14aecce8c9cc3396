package hfile

import "encoding/binary"

// maxPackedTags is how many tags a dictionary contains.
const maxPackedTags = 127

// tagPacker contains the tags of a block that CompressTags stores by number: those used last.
// A new tag in a full dictionary replaces the one that was not used for longest. The zero value is
// empty. Source: hfile spec §5.6.
//
// A tag is one type byte and its value. In the block it is one of
//
//	ff            a new tag: its length as protobuf writes numbers, then its bytes
//	00 00…00 7e   two bytes, big-endian: number of a tag in the dictionary
//
// The tag of type 1 and value "a", and the same tag again:
//
//	ff 02 01 61
//	00 00
type tagPacker struct {
	tags  [maxPackedTags]string
	used  [maxPackedTags]uint64 // clock of the last use
	clock uint64
	count int
	index map[string]int
}

func (d *tagPacker) clear() {
	d.count = 0
	clear(d.index)
}

// append appends a tag as the block has it.
func (d *tagPacker) append(dst, tag []byte) []byte {
	d.clock++
	if i, ok := d.index[string(tag)]; ok {
		d.used[i] = d.clock
		return binary.BigEndian.AppendUint16(dst, uint16(i))
	}
	d.enter(string(tag))
	dst = append(dst, 0xff)
	dst = binary.AppendUvarint(dst, uint64(len(tag)))
	return append(dst, tag...)
}

// enter adds a tag, used now.
func (d *tagPacker) enter(tag string) {
	i := d.count
	if i < maxPackedTags {
		d.count++
	} else {
		i = 0
		for j, used := range d.used {
			if used < d.used[i] {
				i = j
			}
		}
		delete(d.index, d.tags[i])
	}
	if d.index == nil {
		d.index = make(map[string]int, maxPackedTags)
	}
	d.tags[i], d.used[i], d.index[tag] = tag, d.clock, i
}

// cutTag cuts the first tag off tags: its type and value. ok is false if tags does not begin with a
// whole tag.
func cutTag(tags []byte) (tag, rest []byte, ok bool) {
	if len(tags) < 2 {
		return nil, nil, false
	}
	n := int(binary.BigEndian.Uint16(tags))
	if n == 0 || n > len(tags)-2 {
		return nil, nil, false
	}
	return tags[2 : 2+n], tags[2+n:], true
}

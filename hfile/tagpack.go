package hfile

import "encoding/binary"

// tagPacker writes the tags of a block with a dictionary; see tagHeaderLen. The zero value is that
// of a new block.
type tagPacker struct {
	dict  tagDictionary
	index map[string]uint8 // from type and value to the place in dict
}

func (p *tagPacker) reset() {
	p.dict.reset()
	clear(p.index)
}

// append appends a tag, its type and value, to block, which begins where the block does.
func (p *tagPacker) append(block, tag []byte) []byte {
	d := &p.dict
	if i, ok := p.index[string(tag)]; ok {
		d.use(i)
		return binary.BigEndian.AppendUint16(block, uint16(i))
	}
	if d.n == maxTags {
		oldest := d.tags[d.last]
		delete(p.index, string(block[oldest.from:oldest.to]))
	}
	block = append(block, tagNew)
	block = binary.AppendUvarint(block, uint64(len(tag)))
	d.add(len(block), len(block)+len(tag))
	if p.index == nil {
		p.index = make(map[string]uint8, maxTags)
	}
	p.index[string(tag)] = d.first
	return append(block, tag...)
}

package cfile

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/kudupb"
)

// indexOverhead is Kudu's estimate of the trailer's size when it checks whether a node is full. It
// determines where nodes end, so identical files need the identical estimate.
const indexOverhead = 16

// nodeBuilder collects the entries of one node. Source: cfile spec §8.1.
type nodeBuilder struct {
	entries []byte
	offsets []uint32
	first   []byte // key of the first entry
}

func (b *nodeBuilder) add(key []byte, p BlockPointer) {
	if len(b.offsets) == 0 {
		b.first = append(b.first[:0], key...)
	}
	b.offsets = append(b.offsets, uint32(len(b.entries)))
	b.entries = coding.AppendUvarint32(b.entries, uint32(len(key)))
	b.entries = append(b.entries, key...)
	b.entries = coding.AppendUvarint64(b.entries, uint64(p.Offset))
	b.entries = coding.AppendUvarint32(b.entries, uint32(p.Size))
}

// estimate returns the size that determines whether a node is full. Source: cfile spec §8.3.
func (b *nodeBuilder) estimate() int {
	return len(b.entries) + indexOffsetLen*len(b.offsets) + indexOverhead
}

// finish appends the node to dst.
func (b *nodeBuilder) finish(dst []byte, inner bool) ([]byte, error) {
	dst = append(dst, b.entries...)
	for _, off := range b.offsets {
		dst = binary.LittleEndian.AppendUint32(dst, off)
	}
	count, kind := int32(len(b.offsets)), int32(kudupb.IndexBlockTrailerPB_LEAF)
	if inner {
		kind = int32(kudupb.IndexBlockTrailerPB_INTERNAL)
	}
	start := len(dst)
	dst, err := proto.MarshalOptions{}.MarshalAppend(dst, &kudupb.IndexBlockTrailerPB{NumEntries: &count, Type: &kind})
	if err != nil {
		return dst, fmt.Errorf("cfile: index: %w", err)
	}
	return binary.LittleEndian.AppendUint32(dst, uint32(len(dst)-start)), nil
}

func (b *nodeBuilder) reset() { b.entries, b.offsets = b.entries[:0], b.offsets[:0] }

// treeBuilder writes one index tree from its leaves up, between the cblocks that it leads to.
// Children are before their parents in the file. Source: cfile spec §8.3.
type treeBuilder struct {
	out       *framer
	nodeBytes int
	levels    []*nodeBuilder // levels[0] has the leaves
	buf       []byte

	// With late, leaves are kept until finish, or until they have that many bytes, so that they are
	// side by side.
	late     int
	kept     [][]byte // payloads of leaves
	keptKeys [][]byte // their first keys
	keptSize int
}

func newTreeBuilder(out *framer, nodeBytes int) *treeBuilder {
	return &treeBuilder{out: out, nodeBytes: nodeBytes, levels: []*nodeBuilder{new(nodeBuilder)}}
}

// add appends an entry to a level and writes the nodes that become full.
func (t *treeBuilder) add(level int, key []byte, p BlockPointer) error {
	if level == len(t.levels) {
		t.levels = append(t.levels, new(nodeBuilder))
	}
	b := t.levels[level]
	b.add(key, p)
	if len(b.offsets) > 1 && b.estimate() > t.nodeBytes {
		return t.flush(level)
	}
	return nil
}

// write writes the node of a level to the file.
func (t *treeBuilder) write(level int) (p BlockPointer, err error) {
	if t.buf, err = t.levels[level].finish(t.buf[:0], level > 0); err != nil {
		return p, err
	}
	p, _, err = t.out.writeBlock(t.buf)
	return p, err
}

// keep keeps the leaf.
func (t *treeBuilder) keep() error {
	b := t.levels[0]
	leaf, err := b.finish(make([]byte, 0, b.estimate()), false)
	if err != nil {
		return err
	}
	t.kept, t.keptKeys = append(t.kept, leaf), append(t.keptKeys, bytes.Clone(b.first))
	t.keptSize += len(leaf)
	b.reset()
	if t.keptSize < t.late {
		return nil
	}
	return t.writeKept()
}

// writeKept writes the leaves that were kept and adds their pointers to the level above.
func (t *treeBuilder) writeKept() error {
	leaves, keys := t.kept, t.keptKeys
	t.kept, t.keptKeys, t.keptSize = nil, nil, 0
	for i, leaf := range leaves {
		p, _, err := t.out.writeBlock(leaf)
		if err == nil {
			err = t.add(1, keys[i], p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// flush writes the node of a level and adds its pointer to the level above.
func (t *treeBuilder) flush(level int) error {
	if level == 0 && t.late > 0 {
		return t.keep()
	}
	p, err := t.write(level)
	if err != nil {
		return err
	}
	b := t.levels[level]
	b.reset()
	return t.add(level+1, b.first, p)
}

// finish writes all remaining nodes and returns the root.
func (t *treeBuilder) finish() (BlockPointer, error) {
	if t.late > 0 && len(t.levels[0].offsets) > 0 && (len(t.kept) > 0 || len(t.levels) > 1) {
		if err := t.keep(); err != nil {
			return BlockPointer{}, err
		}
	}
	if err := t.writeKept(); err != nil {
		return BlockPointer{}, err
	}
	for level := 0; level < len(t.levels)-1; level++ {
		if len(t.levels[level].offsets) == 0 {
			continue
		}
		if err := t.flush(level); err != nil {
			return BlockPointer{}, err
		}
	}
	return t.write(len(t.levels) - 1)
}

// Separator returns the shortest prefix of key that is at or after prev and, unless prev equals key
// or starts with it, strictly after prev. Source: cfile spec §8.4.
func Separator(prev, key []byte) []byte {
	n := 0
	for n < len(prev) && n < len(key) && prev[n] == key[n] {
		n++
	}
	return key[:min(n+1, len(key))]
}

// Package block names the bytes of one block and the two ways to reach them.
//
// A block is a run of immutable bytes with a number; the block manager keeps many of them in a
// container, a test keeps one in memory, a tool takes a loose file for one. Format packages
// (cfile, bloom, delta) know blocks only through Source and Sink.
package block

import (
	"fmt"
	"io"
)

// ID is the number of a block within one store. 0 is never given out.
type ID uint64

func (id ID) String() string { return fmt.Sprintf("%d", uint64(id)) }

// Source is the bytes of one block, open for reading.
//
// ReadAt follows io.ReaderAt and may be called at the same time from many goroutines.
// The bytes never change while the Source is open.
type Source interface {
	io.ReaderAt
	ID() ID      // number of the block; 0 for a loose file
	Size() int64 // length in bytes
}

// Sink takes the bytes of one new block, in order.
//
// A Sink is used by one goroutine. What was written becomes a block only by a later step of its
// owner (the metadata commit of the block manager), never by the Sink itself.
type Sink interface {
	io.Writer
	ID() ID
	Size() int64 // bytes written so far
}

// Memory is a block held in memory: a Sink to write it, a Source to read it.
type Memory struct {
	Number ID
	Bytes  []byte
}

// ID returns the number.
func (m *Memory) ID() ID { return m.Number }

// Size returns the number of bytes held.
func (m *Memory) Size() int64 { return int64(len(m.Bytes)) }

// Write appends p.
func (m *Memory) Write(p []byte) (int, error) {
	m.Bytes = append(m.Bytes, p...)
	return len(p), nil
}

// ReadAt follows io.ReaderAt.
func (m *Memory) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > int64(len(m.Bytes)) {
		return 0, fmt.Errorf("block %d: read at byte %d of %d: %w", m.Number, off, len(m.Bytes), io.EOF)
	}
	n := copy(p, m.Bytes[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

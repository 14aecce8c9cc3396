// Package block defines block IDs and the interfaces for reading and writing one block.
//
// A block is a numbered sequence of immutable bytes. The block manager stores many blocks in a
// container file; a test can keep one in memory, and a tool can read a single file as a block. The
// format packages (cfile, bloom, delta) access blocks only through Source and Sink.
package block

import (
	"fmt"
	"io"
)

// ID is the number of a block within one store. The block manager never assigns 0.
type ID uint64

func (id ID) String() string { return fmt.Sprintf("%d", uint64(id)) }

// Source is the bytes of one block, open for reading.
//
// ReadAt follows io.ReaderAt and is safe for concurrent use. The bytes never change while the
// Source is open.
type Source interface {
	io.ReaderAt
	ID() ID      // number of the block; 0 for a loose file
	Size() int64 // length in bytes
}

// Tailed is a Source whose last bytes were read when it was opened.
type Tailed interface {
	Source
	// TakeTail returns the last bytes of the block and forgets them; the next call returns nil. The
	// caller may keep them.
	TakeTail() []byte
}

// Sink receives the bytes of one new block, in order.
//
// A Sink is not safe for concurrent use. The written bytes become a block only in a later step of
// the Sink's owner, such as the metadata commit of the block manager.
type Sink interface {
	io.Writer
	ID() ID
	Size() int64 // bytes written so far
}

// NewSink returns a Sink, with block ID 0, that writes to w: a new file outside a store.
func NewSink(w io.Writer) Sink { return &writerSink{Writer: w} }

type writerSink struct {
	io.Writer
	size int64
}

func (s *writerSink) ID() ID { return 0 }

func (s *writerSink) Size() int64 { return s.size }

func (s *writerSink) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	s.size += int64(n)
	return n, err
}

// Memory is a block in memory. It implements Sink and Source.
type Memory struct {
	Number ID
	Bytes  []byte
}

// ID returns the number.
func (m *Memory) ID() ID { return m.Number }

// Size returns the length in bytes.
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

package blockmanager

import (
	"errors"
	"fmt"
	"sync"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/zeebo/xxh3"
)

// sinkBuffer is how many bytes of a block are buffered before the sink acquires a container.
// Shorter blocks share a container, so the small blocks of a flush are in one file and cost one
// sync.
const sinkBuffer = 256 << 10

// sinkPiece is the size of the pieces of which a buffer has as many as it needs: a wide table has
// hundreds of sinks.
const sinkPiece = 32 << 10

var zeros [4096]byte

// sinkPieces are pieces that no sink uses.
var sinkPieces = sync.Pool{New: func() any { return new([sinkPiece]byte) }}

// sink takes the bytes of one block. From its first write to a container until it is finished or
// dropped, no other sink writes there, so the block is contiguous.
type sink struct {
	c    *Creation
	id   block.ID
	size int64
	sum  *xxh3.Hasher
	tail []byte // at least the last footerProbe bytes, or all of them
	err  error  // the first error; nothing is written after it

	whole   []*[sinkPiece]byte // bytes from written on
	last    []byte             // bytes after them, up to a piece
	piece   *[sinkPiece]byte   // memory of last, unless the buffer is small
	in      *container
	start   int64 // where the block begins in it
	written int64
}

var errSinkEnded = errors.New("blockmanager: write to a block that is finished or dropped")

func newSink(c *Creation, id block.ID) *sink {
	return &sink{c: c, id: id, sum: xxh3.New()}
}

// ID returns the block's number.
func (s *sink) ID() block.ID { return s.id }

// Size returns the number of bytes written.
func (s *sink) Size() int64 { return s.size }

// Write appends bytes to the block. It does not retain p.
func (s *sink) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	s.sum.Write(p)
	s.keepTail(p)
	s.size += int64(len(p))
	n := len(p)
	if s.buffered()+len(p) < sinkBuffer {
		s.keep(p)
		return n, nil
	}
	if err := s.flush(); err != nil {
		return 0, err
	}
	if len(p) >= sinkBuffer {
		if err := s.put(p); err != nil {
			return 0, err
		}
		return n, nil
	}
	s.keep(p)
	return n, nil
}

// buffered returns the number of bytes in the buffer.
func (s *sink) buffered() int { return len(s.whole)*sinkPiece + len(s.last) }

// keep appends p to the buffer. The first piece grows with its bytes, since many small blocks may be
// written at the same time.
func (s *sink) keep(p []byte) {
	if s.piece == nil && len(s.last)+len(p) <= sinkPiece/2 {
		s.last = append(s.last, p...)
		return
	}
	for s.piece == nil || len(p) > 0 {
		switch {
		case s.piece == nil:
			s.piece = sinkPieces.Get().(*[sinkPiece]byte)
			s.last = append(s.piece[:0], s.last...)
		case len(s.last) == sinkPiece:
			s.whole, s.piece, s.last = append(s.whole, s.piece), nil, nil
		default:
			n := min(len(p), sinkPiece-len(s.last))
			s.last, p = append(s.last, p[:n]...), p[n:]
		}
	}
}

// release drops the buffer.
func (s *sink) release() {
	s.releaseWhole()
	if s.piece != nil {
		sinkPieces.Put(s.piece)
	}
	s.last, s.piece = nil, nil
}

func (s *sink) releaseWhole() {
	for _, p := range s.whole {
		sinkPieces.Put(p)
	}
	s.whole = s.whole[:0]
}

func (s *sink) keepTail(p []byte) {
	if len(p) >= footerProbe {
		s.tail = append(s.tail[:0], p[len(p)-footerProbe:]...)
		return
	}
	if len(s.tail)+len(p) > 4*footerProbe {
		s.tail = append(s.tail[:0], s.tail[len(s.tail)-footerProbe:]...)
	}
	s.tail = append(s.tail, p...)
}

// flush writes the buffer.
func (s *sink) flush() error {
	for _, p := range s.whole {
		if err := s.put(p[:]); err != nil {
			return err
		}
	}
	s.releaseWhole()
	err := s.put(s.last)
	s.last = s.last[:0]
	return err
}

// put writes p after the bytes written so far.
func (s *sink) put(p []byte) error {
	m := s.c.m
	if m.closed.Load() && s.err == nil {
		s.err = fmt.Errorf("blockmanager: block %d: %w", s.id, fault.ErrClosed)
	}
	if s.in == nil && s.err == nil {
		if s.in, s.err = s.c.acquire(); s.err == nil {
			s.start = s.in.end
		}
	}
	switch {
	case s.err != nil:
		return s.err
	case len(p) == 0:
		return nil
	case m.poison.is():
		s.err = m.poison.err()
	default:
		if err := s.in.write(&m.o, p, s.start+s.written); err != nil {
			s.err = m.failed(err)
		}
		s.written += int64(len(p))
	}
	return s.err
}

// finish writes the rest, and zeros up to the next multiple of the block size, which overwrite what
// an aborted block may have left there.
func (s *sink) finish() (blockRow, error) {
	if s.err != nil {
		return blockRow{}, s.err
	}
	m := s.c.m
	for pad := alignUp(s.size, m.state.format.blockSize) - s.size; pad > 0; {
		n := min(pad, int64(len(zeros)))
		s.keep(zeros[:n])
		pad -= n
	}
	if err := s.flush(); err != nil {
		return blockRow{}, err
	}
	s.err = errSinkEnded
	s.release()
	row := blockRow{container: s.in.id, off: s.start, length: s.size, sum: s.sum.Sum64()}
	row.identity = identity(m.o.Instance, s.id, &row, s.tail[max(0, len(s.tail)-footerProbe):])
	return row, nil
}

// drop returns the container. Its bytes after the end will be overwritten.
func (s *sink) drop() {
	if s.err == nil {
		s.err = errSinkEnded
	}
	s.release()
	if s.in != nil {
		s.c.mu.Lock()
		defer s.c.mu.Unlock()
		s.c.free = append(s.c.free, s.in)
	}
}

package arrowio

import (
	"io"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// chunkStream reads the bytes of a column chunk in order, through a buffer.
type chunkStream struct {
	in       io.ReaderAt
	buf      *memory.Buffer
	from, to int   // of the buffer: bytes that were read and not consumed
	next     int64 // in the file, of the first byte after these
	end      int64
}

// streamBytes is the size of the buffer. A larger page makes it larger.
const streamBytes = 256 << 10

// open begins at byte start of the file, of size bytes.
func (s *chunkStream) open(start, size int64) {
	s.from, s.to, s.next, s.end = 0, 0, start, start+size
}

// position returns where in the file the first byte is that was not consumed.
func (s *chunkStream) position() int64 { return s.next - int64(s.to-s.from) }

// left returns the number of bytes that were not consumed.
func (s *chunkStream) left() int64 { return s.end - s.position() }

// peek returns the next bytes, at least n of them or all that are left. They are valid until the
// next call.
func (s *chunkStream) peek(n int) ([]byte, error) {
	n = int(min(int64(n), s.left()))
	if s.to-s.from < n {
		if err := s.fill(n); err != nil {
			return nil, err
		}
	}
	return s.buf.Bytes()[s.from:s.to], nil
}

// fill reads until n bytes are in the buffer.
func (s *chunkStream) fill(n int) error {
	b := s.buf.Bytes()
	s.to = copy(b, b[s.from:s.to])
	s.from = 0
	if n > len(b) {
		s.buf.Resize(max(n, int(min(streamBytes, s.left()))))
		b = s.buf.Bytes()
	}
	more := b[s.to:]
	more = more[:min(int64(len(more)), s.end-s.next)]
	if err := readAt(s.in, more, s.next); err != nil {
		return err
	}
	s.to += len(more)
	s.next += int64(len(more))
	return nil
}

// skip consumes n bytes that peek has returned.
func (s *chunkStream) skip(n int) { s.from += n }

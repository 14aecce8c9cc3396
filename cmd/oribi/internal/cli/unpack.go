package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// Unpacking ahead: a packed file holds at most so many pieces of so many bytes that nobody has read
// yet.
const (
	pieceBytes  = 64 << 10
	piecesAhead = 8
)

// unpacked is what a packed file holds. A goroutine of its own unpacks it ahead of whoever reads,
// who has other work on the rows.
type unpacked struct {
	file   io.Closer
	pieces chan piece
	spare  chan []byte // given back
	stop   chan struct{}
	once   sync.Once

	now  piece
	rest []byte // of now, not yet read
}

// piece is some bytes and, behind the last of them, what ended the file: io.EOF or an error.
type piece struct {
	bytes []byte
	err   error
}

// unpack reads the packed file in. Close closes file. Errors: a file that does not begin as a
// packed one.
func unpack(in io.Reader, file io.Closer) (*unpacked, error) {
	buffered := bufio.NewReaderSize(in, 64<<10)
	if magic, err := buffered.Peek(2); err != nil && err != io.EOF {
		return nil, err
	} else if string(magic) != "\x1f\x8b" {
		return nil, fmt.Errorf("not packed: %w", gzip.ErrHeader)
	}
	z, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, packedError(err)
	}
	u := &unpacked{file: file, pieces: make(chan piece, piecesAhead), spare: make(chan []byte, piecesAhead+2), stop: make(chan struct{})}
	go u.fill(z)
	return u, nil
}

// fill unpacks piece by piece until the file ends or nobody wants more.
func (u *unpacked) fill(z io.Reader) {
	defer close(u.pieces)
	for p := (piece{}); p.err == nil; {
		select {
		case p.bytes = <-u.spare:
		default:
			p.bytes = make([]byte, pieceBytes)
		}
		n, err := z.Read(p.bytes) // not more than comes at once: it may be a pipe
		if p.bytes, p.err = p.bytes[:n], err; err != io.EOF {
			p.err = packedError(err)
		}
		select {
		case u.pieces <- p:
		case <-u.stop:
			return
		}
	}
}

// packedError says of a packed file that ends too early what a reader of a plain one would not take
// for the end of its rows.
func packedError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the packed file is cut short: %w", err)
	}
	return err
}

func (u *unpacked) Read(p []byte) (int, error) {
	for len(u.rest) == 0 {
		if u.now.err != nil {
			return 0, u.now.err
		}
		if u.now.bytes != nil {
			u.spare <- u.now.bytes[:cap(u.now.bytes)] // has room for all that there are
		}
		u.now = <-u.pieces
		u.rest = u.now.bytes
	}
	n := copy(p, u.rest)
	u.rest = u.rest[n:]
	return n, nil
}

// Close does not wait for the goroutine, which a pipe without a writer may keep: it ends when that
// gives something, or fails.
func (u *unpacked) Close() error {
	u.once.Do(func() { close(u.stop) })
	return u.file.Close()
}

package console

import (
	"bufio"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// Limits of unpacking ahead: the number of pieces not yet read, and the bytes of a piece.
const (
	pieceBytes  = 64 << 10
	piecesAhead = 8
)

// unpacked reads the content of a packed file. A separate goroutine unpacks it ahead of the reader,
// which processes the rows at the same time.
type unpacked struct {
	file   io.Closer
	pieces chan piece
	spare  chan []byte // buffers for reuse
	stop   chan struct{}
	once   sync.Once

	now  piece
	rest []byte // part of now not yet returned
}

// piece is some bytes of a file. err is the error after the last of them, io.EOF at the end.
type piece struct {
	bytes []byte
	err   error
}

// unpack returns a reader of the packed file in. Close closes file. It returns an error if the file
// does not begin like a packed one.
func unpack(in io.Reader, file io.Closer) (*unpacked, error) {
	buffered := bufio.NewReaderSize(in, 64<<10)
	if magic, err := buffered.Peek(2); err != nil && err != io.EOF {
		return nil, err
	} else if string(magic) != "\x1f\x8b" {
		return nil, fmt.Errorf("not compressed: %w", gzip.ErrHeader)
	}
	z, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, packedError(err)
	}
	u := &unpacked{file: file, pieces: make(chan piece, piecesAhead),
		spare: make(chan []byte, piecesAhead+2), stop: make(chan struct{})}
	go u.fill(&members{in: buffered, member: z})
	return u, nil
}

// members reads the content of a packed file: the contents of its members, one after the other.
// Zeros after a member, with which tapes and some downloads fill up a file, end it; anything else
// does not.
type members struct {
	in     *bufio.Reader // has ReadByte: the member does not read beyond its own end
	member *gzip.Reader
	begun  bool
}

func (m *members) Read(p []byte) (int, error) {
	if !m.begun {
		m.begun = true
		m.member.Multistream(false)
	}
	for {
		n, err := m.member.Read(p)
		if n > 0 || err != io.EOF {
			if err == io.EOF {
				err = nil // the next call continues with the next member
			}
			return n, err
		}
		if err := m.next(); err != nil {
			return 0, err
		}
	}
}

// next begins the next member. It returns io.EOF after the last member.
func (m *members) next() error {
	switch b, err := m.in.Peek(1); {
	case err != nil:
		return err
	case b[0] == 0:
		return m.passZeros()
	}
	if err := m.member.Reset(m.in); err != nil {
		if errors.Is(err, gzip.ErrHeader) {
			err = fmt.Errorf("other bytes after the compressed content: %w", err)
		}
		return err
	}
	m.member.Multistream(false)
	return nil
}

// passZeros returns io.EOF if only zeros are left.
func (m *members) passZeros() error {
	for {
		b, err := m.in.ReadByte()
		if err != nil {
			return err
		}
		if b != 0 {
			return fmt.Errorf("other bytes after the compressed content and the zeros after it: %w", gzip.ErrHeader)
		}
	}
}

// fill unpacks piece by piece until the file ends or Close is called.
func (u *unpacked) fill(z io.Reader) {
	defer close(u.pieces)
	for p := (piece{}); p.err == nil; {
		select {
		case p.bytes = <-u.spare:
		default:
			p.bytes = make([]byte, pieceBytes)
		}
		n, err := z.Read(p.bytes) // a short read is enough: in may be a pipe
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

// packedError replaces io.EOF of a packed file that ends too early, since a reader would take it
// for the end of the rows.
func packedError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the compressed file is truncated: %w", err)
	}
	return err
}

func (u *unpacked) Read(p []byte) (int, error) {
	for len(u.rest) == 0 {
		if u.now.err != nil {
			return 0, u.now.err
		}
		if u.now.bytes != nil {
			u.spare <- u.now.bytes[:cap(u.now.bytes)] // never blocks: it has room for all buffers
		}
		u.now = <-u.pieces
		u.rest = u.now.bytes
	}
	n := copy(p, u.rest)
	u.rest = u.rest[n:]
	return n, nil
}

// Close does not wait for the goroutine, which may block on a pipe without a writer. The goroutine
// ends when its read returns.
func (u *unpacked) Close() error {
	u.once.Do(func() { close(u.stop) })
	return u.file.Close()
}

// IsBadPack reports whether an error says that a .gz file is damaged or not a .gz file.
func IsBadPack(err error) bool {
	_, malformed := errors.AsType[flate.CorruptInputError](err)
	return malformed || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) ||
		errors.Is(err, io.ErrUnexpectedEOF)
}

package console

import (
	"bufio"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// Packer compresses what is written to it. A separate goroutine compresses it, so that the writer
// makes the next rows at the same time.
type Packer struct {
	pieces chan []byte
	spare  chan []byte // buffers for reuse
	failed chan struct{}
	err    error // valid once failed or done is closed
	done   chan struct{}
	once   sync.Once
}

// NewPacker returns a packer that writes to out.
func NewPacker(out io.Writer) *Packer {
	p := &Packer{pieces: make(chan []byte, piecesAhead), spare: make(chan []byte, piecesAhead+2),
		failed: make(chan struct{}), done: make(chan struct{})}
	go p.run(out)
	return p
}

func (p *Packer) run(out io.Writer) {
	defer close(p.done)
	buffered := bufio.NewWriterSize(out, pieceBytes)
	z := gzip.NewWriter(buffered)
	fail := func(err error) {
		if p.err == nil && err != nil {
			p.err = err
			close(p.failed)
		}
	}
	for piece := range p.pieces {
		if p.err == nil {
			_, err := z.Write(piece)
			fail(err)
		}
		p.spare <- piece[:0] // never blocks: it has room for all buffers
	}
	if p.err == nil {
		err := z.Close()
		if err == nil {
			err = buffered.Flush()
		}
		fail(err)
	}
}

// Write returns an error of an earlier write, too.
func (p *Packer) Write(b []byte) (int, error) {
	var piece []byte
	select {
	case piece = <-p.spare:
	default:
	}
	select {
	case <-p.failed:
		return 0, p.err
	case p.pieces <- append(piece, b...):
		return len(b), nil
	}
}

// Close writes the rest of the bytes, and waits for the writes. It may be called twice.
func (p *Packer) Close() error {
	p.once.Do(func() { close(p.pieces) })
	<-p.done
	return p.err
}

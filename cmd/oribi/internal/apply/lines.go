package apply

import (
	"bufio"
	"context"
	"io"

	"github.com/oribi-db/oribi/internal/jsonin"
)

// maxLineBytes bounds a line, and so the memory for an input without line ends. It is far above the
// limit of a write batch.
const maxLineBytes = 256 << 20

// line is one line of the input, without its line end; number counts from 1.
type line struct {
	number int
	text   []byte
	err    error // instead of text; io.EOF after the last line
}

// lines reads lines ahead in a separate goroutine: an input that blocks, such as a pipe or a
// terminal, then does not delay an interrupt.
type lines struct {
	ready chan line
	spare chan []byte // buffers for reuse
	stop  chan struct{}
}

const linesAhead = 2

// keepBytes is the maximum size of a buffer that is reused for later lines.
const keepBytes = 1 << 20

func readLines(in io.Reader) *lines {
	l := &lines{ready: make(chan line, linesAhead), spare: make(chan []byte, linesAhead+2), stop: make(chan struct{})}
	go l.run(bufio.NewReaderSize(in, 256<<10))
	return l
}

// next waits for a line. Its text is valid until done is called with it.
func (l *lines) next(ctx context.Context) (line, error) {
	if err := ctx.Err(); err != nil {
		return line{}, err
	}
	select {
	case n := <-l.ready:
		return n, n.err
	case <-ctx.Done():
		return line{}, ctx.Err()
	}
}

// done returns the memory of a line for reuse.
func (l *lines) done(n line) {
	if cap(n.text) > keepBytes {
		return
	}
	select {
	case l.spare <- n.text:
	default:
	}
}

// close ends the reading goroutine once its read returns.
func (l *lines) close() { close(l.stop) }

func (l *lines) run(in *bufio.Reader) {
	for number := 1; ; number++ {
		var buffer []byte
		select {
		case buffer = <-l.spare:
		default:
		}
		n := line{number: number}
		n.text, n.err = jsonin.ReadLine(in, buffer[:0], maxLineBytes)
		select {
		case l.ready <- n:
		case <-l.stop:
			return
		}
		if n.err != nil {
			return
		}
	}
}

package apply

import (
	"bufio"
	"context"
	"io"

	"github.com/oribi-db/oribi/cmd/oribi/internal/jsonin"
)

// maxLineBytes bounds a line, and so the memory that an input without line ends takes. It is far
// above what a write batch may hold.
const maxLineBytes = 256 << 20

// line is one line of the input, without its end; number counts from 1.
type line struct {
	number int
	text   []byte
	err    error // instead of a text; io.EOF behind the last
}

// lines reads lines ahead of whoever asks for them, in a goroutine of its own: an input that gives
// nothing, such as a pipe or a terminal, then does not keep an interrupt from being seen.
type lines struct {
	ready chan line
	spare chan []byte // buffers given back
	stop  chan struct{}
}

const linesAhead = 2

// keepBytes is the largest buffer that is kept for later lines.
const keepBytes = 1 << 20

func readLines(in io.Reader) *lines {
	l := &lines{ready: make(chan line, linesAhead), spare: make(chan []byte, linesAhead+2), stop: make(chan struct{})}
	go l.run(bufio.NewReaderSize(in, 256<<10))
	return l
}

// next waits for a line. Its text holds until done is called with it.
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

// done gives the memory of a line back.
func (l *lines) done(n line) {
	if cap(n.text) > keepBytes {
		return
	}
	select {
	case l.spare <- n.text:
	default:
	}
}

// close lets the reading goroutine go, once its input returns.
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

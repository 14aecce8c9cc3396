package console

import (
	"context"
	"io"
)

// Interruptible makes reads end when ctx does, even while the input blocks, as a terminal may. The
// data of a read in flight is then lost.
func Interruptible(ctx context.Context, in io.Reader) io.Reader {
	return &interruptibleReader{ctx: ctx, in: in}
}

type interruptibleReader struct {
	ctx context.Context
	in  io.Reader

	buffer  []byte      // filled by the reading goroutine
	rest    []byte      // part of buffer not yet returned
	filled  chan filled // one at a time
	failure error
}

type filled struct {
	n   int
	err error
}

func (r *interruptibleReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 && r.failure == nil {
		r.fill()
	}
	n := copy(p, r.rest)
	if r.rest = r.rest[n:]; len(r.rest) == 0 && n == 0 {
		return 0, r.failure
	}
	return n, nil
}

// fill reads once.
func (r *interruptibleReader) fill() {
	if r.buffer == nil {
		r.buffer, r.filled = make([]byte, 64<<10), make(chan filled, 1)
	}
	go func() {
		n, err := r.in.Read(r.buffer)
		r.filled <- filled{n, err}
	}()
	select {
	case f := <-r.filled:
		r.rest, r.failure = r.buffer[:f.n], f.err
	case <-r.ctx.Done():
		r.failure = r.ctx.Err()
	}
}

package jsonin

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// SkipMark skips a UTF-8 byte order mark at the start of in, which some programs write.
func SkipMark(in *bufio.Reader) {
	if mark, _ := in.Peek(3); string(mark) == "\xef\xbb\xbf" {
		in.Discard(3) // cannot fail: it is there
	}
}

// ReadLine appends the next line of in, without its line end, to buffer. The last line need not
// have one; after it, ReadLine returns io.EOF. A line of more than about most bytes is an error,
// which bounds the memory for an input without line ends.
func ReadLine(in *bufio.Reader, buffer []byte, most int) ([]byte, error) {
	for {
		part, err := in.ReadSlice('\n')
		buffer = append(buffer, part...)
		switch {
		case err == nil:
			return buffer[:len(buffer)-1], nil
		case err == io.EOF && len(buffer) > 0:
			return buffer, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(buffer) > most:
			return nil, fmt.Errorf("the line is longer than %d bytes", most)
		}
	}
}

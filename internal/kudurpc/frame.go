package kudurpc

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/fault"
)

const (
	magic       = "hrpc\x09\x00\x00" // wire format: never change
	lengthBytes = 4                  // wire format: never change

	// maxSidecars is the most that Kudu's servers send in a response.
	maxSidecars = 10000
	// maxHeader allows for a header with the offsets of maxSidecars, which take up to 6 bytes each.
	maxHeader = 1 << 17
	// readAhead is the size of reads of headers; of a large body, no more than that is copied.
	readAhead = 8 << 10
	// maxVarint is the length of the longest varint of 32 bits.
	maxVarint = 5
)

// AppendFrame appends a frame to dst; a nil body is empty. Errors: a message lacks a required field,
// or the frame has more than limit bytes.
func AppendFrame(dst []byte, header, body proto.Message, limit int) ([]byte, error) {
	start := len(dst)
	dst = append(dst, make([]byte, lengthBytes)...)
	var err error
	for _, m := range []proto.Message{header, body} {
		if m == nil {
			dst = append(dst, 0)
			continue
		}
		size := proto.Size(m)
		if len(dst)-start+size > limit {
			return dst[:start], fmt.Errorf("a request of %d bytes, the limit is %d: send fewer rows at a time", size, limit)
		}
		dst = protowire.AppendVarint(slices.Grow(dst, maxVarint+size), uint64(size))
		if dst, err = (proto.MarshalOptions{UseCachedSize: true}).MarshalAppend(dst, m); err != nil {
			return dst[:start], err
		}
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-lengthBytes))
	return dst, nil
}

// A FrameReader reads frames of at most limit bytes. Not safe for concurrent use.
type FrameReader struct {
	r      *bufio.Reader
	limit  int
	header []byte // memory
}

// NewFrameReader returns a reader of the frames in r.
func NewFrameReader(r io.Reader, limit int) *FrameReader {
	return &FrameReader{r: bufio.NewReaderSize(r, readAhead), limit: limit}
}

// Next reads the beginning of the next frame: its header, and the length of its body. The caller
// reads the body before the next call of Next. Errors: io.EOF at the end between two frames;
// ErrCorrupt.
func (f *FrameReader) Next(header proto.Message) (body int, err error) {
	var length [lengthBytes]byte
	if _, err := io.ReadFull(f.r, length[:]); err != nil {
		return 0, err
	}
	size := binary.BigEndian.Uint32(length[:])
	if int64(size) > int64(f.limit) {
		return 0, lengthError{size, f.limit}
	}
	left := int(size)
	n, err := f.varint(&left)
	if err != nil {
		return 0, err
	}
	if n > maxHeader {
		return 0, fault.Corruptf("a message whose header has %d bytes", n)
	}
	f.header = append(f.header[:0], make([]byte, n)...)
	if err := f.Body(f.header); err != nil {
		return 0, err
	}
	left -= n
	if err := proto.Unmarshal(f.header, header); err != nil {
		return 0, fault.Corruptf("header of a message: %v", err)
	}
	n, err = f.varint(&left)
	if err == nil && n != left {
		err = fault.Corruptf("the body of a message has %d bytes, its frame %d more", n, left-n)
	}
	return n, err
}

// lengthError is the error of a frame that is too long, or of what is none.
type lengthError struct {
	size  uint32
	limit int
}

func (e lengthError) Error() string {
	return fmt.Sprintf("a message of %d bytes, the limit is %d: %v", e.size, e.limit, fault.ErrCorrupt)
}

func (e lengthError) Unwrap() error { return fault.ErrCorrupt }

// varint reads a length that is at most *left once its own bytes are subtracted from *left.
func (f *FrameReader) varint(left *int) (int, error) {
	var b [maxVarint]byte
	for i := range b {
		if *left == 0 {
			return 0, fault.Corruptf("a message ends within the length of a part")
		}
		c, err := f.r.ReadByte()
		if err != nil {
			return 0, midFrame(err)
		}
		b[i] = c
		*left--
		if c >= 0x80 {
			continue
		}
		n, _ := protowire.ConsumeVarint(b[:i+1])
		if n > uint64(*left) {
			return 0, fault.Corruptf("a part of a message has %d bytes, the rest of its frame %d", n, *left)
		}
		return int(n), nil
	}
	return 0, fault.Corruptf("the length of a part of a message has more than %d bytes", maxVarint)
}

// Body reads into all of dst.
func (f *FrameReader) Body(dst []byte) error {
	_, err := io.ReadFull(f.r, dst)
	return midFrame(err)
}

// Read reads bytes after the frames that were read, as an io.Reader: of a stream that goes on
// otherwise.
func (f *FrameReader) Read(dst []byte) (int, error) { return f.r.Read(dst) }

// skip reads n bytes and drops them.
func (f *FrameReader) skip(n int) error {
	_, err := f.r.Discard(n)
	return midFrame(err)
}

// midFrame returns the error of a read within a frame, where the end is unexpected.
func midFrame(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// split divides the body of a response into its message and its sidecars, which are appended to dst.
// All alias body. Errors: ErrCorrupt.
func split(dst [][]byte, body []byte, offsets []uint32) (message []byte, sidecars [][]byte, err error) {
	if len(offsets) == 0 {
		return body, dst, nil
	}
	if len(offsets) > maxSidecars {
		return nil, nil, fault.Corruptf("a response with %d sidecars", len(offsets))
	}
	if len(body) > math.MaxUint32 {
		return nil, nil, fault.Corruptf("a response of %d bytes", len(body))
	}
	from := offsets[0]
	for i, at := range offsets {
		end := uint32(len(body))
		if i+1 < len(offsets) {
			end = offsets[i+1]
		}
		if at > end || end > uint32(len(body)) {
			return nil, nil, fault.Corruptf("sidecar %d of a response is at bytes %d to %d of %d", i, at, end, len(body))
		}
		dst = append(dst, body[at:end:end])
	}
	return body[:from:from], dst, nil
}

package arrowio

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// messages reads the messages of an Arrow stream or file for package ipc, and checks their
// metadata. It is an ipc.MessageReader.
//
//	stream   message, message, …, the schema first; then ffffffff 00000000, or nothing
//	message  ffffffff (missing in old ones); int32: bytes of the metadata; metadata; body
//	file     "ARROW1" 0 0; messages; footer; int32: bytes of the footer; "ARROW1"
//
// The footer of a file has the schema, and the places of its dictionaries and record batches.
type messages struct {
	mem  *bounded
	next func() (io.Reader, error) // returns where the next message begins; io.EOF at the end
	cur  *ipc.Message
}

const (
	continuation   = 0xffffffff // begins a message
	leastBody      = 1 << 20    // bytes of a body that are read at first
	maxMetadata    = 16 << 20   // bytes; a schema of 300 columns has 50,000
	fileHeaderLen  = 8          // of a file
	fileTrailerLen = 10         // after the footer
)

// streamMessages returns the messages of a stream.
func streamMessages(r io.Reader, mem *bounded) *messages {
	return &messages{mem: mem, next: func() (io.Reader, error) { return r, nil }}
}

// fileMessages returns the messages of a file of size bytes.
func fileMessages(r io.ReaderAt, size int64, mem *bounded) (*messages, error) {
	var trailer [fileTrailerLen]byte
	if size < fileHeaderLen+fileTrailerLen {
		return nil, corruptf("an Arrow file of %d bytes", size)
	}
	if err := readAt(r, trailer[:], size-fileTrailerLen); err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(trailer[:]))
	if string(trailer[4:]) != fileMagic || n > maxMetadata || n > size-fileHeaderLen-fileTrailerLen {
		return nil, corruptf("the Arrow file has no footer")
	}
	footer := make([]byte, n)
	if err := readAt(r, footer, size-fileTrailerLen-n); err != nil {
		return nil, err
	}
	root, err := checkFlatBuffer(footer, fbFooter)
	if err != nil {
		return nil, err
	}
	f := flatBuffer{b: footer}
	// Writers up to Arrow 0.14 left out the version of a footer, which is 0 then.
	if err := f.supported(root, 0); err != nil {
		return nil, err
	}
	blocks := append(f.blocks(root, 2), f.blocks(root, 3)...)
	schema := f.schemaMessage(root)
	return &messages{mem: mem, next: func() (io.Reader, error) {
		if schema != nil {
			r := bytes.NewReader(schema)
			schema = nil
			return r, nil
		}
		if len(blocks) == 0 {
			return nil, io.EOF
		}
		b := blocks[0]
		blocks = blocks[1:]
		if b.at < fileHeaderLen || b.metadata < 8 || b.body < 0 || b.at > size || b.metadata > size-b.at ||
			b.body > size-b.at-b.metadata {
			return nil, corruptf("a message of %d and %d bytes at byte %d of a file of %d",
				b.metadata, b.body, b.at, size)
		}
		return io.NewSectionReader(r, b.at, b.metadata+b.body), nil
	}}, nil
}

// readAt fills p with the bytes at a position.
func readAt(r io.ReaderAt, p []byte, at int64) error {
	n, err := r.ReadAt(p, at)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return corruptf("the file ends at byte %d, want %d", at+int64(n), at+int64(len(p)))
	}
	return err
}

// Message returns the next message, which is valid until the next call. io.EOF at the end.
func (m *messages) Message() (*ipc.Message, error) {
	m.Release()
	r, err := m.next()
	if err != nil {
		return nil, err
	}
	var word [4]byte
	if n, err := io.ReadFull(r, word[:]); err != nil {
		if n == 0 && errors.Is(err, io.EOF) {
			return nil, io.EOF // a stream may end without a marker
		}
		return nil, short(err)
	}
	length := binary.LittleEndian.Uint32(word[:])
	if length == continuation {
		if _, err := io.ReadFull(r, word[:]); err != nil {
			return nil, short(err)
		}
		length = binary.LittleEndian.Uint32(word[:])
	}
	if length == 0 {
		return nil, io.EOF
	}
	if length < 8 || length > maxMetadata {
		return nil, corruptf("a message with %d bytes of metadata", length)
	}
	metadata := make([]byte, length)
	if _, err := io.ReadFull(r, metadata); err != nil {
		return nil, short(err)
	}
	root, err := checkFlatBuffer(metadata, fbMessage)
	if err != nil {
		return nil, err
	}
	f := flatBuffer{b: metadata}
	if err := f.supported(root, oldestMetadata); err != nil {
		return nil, err
	}
	size := f.scalar(root, 3)
	switch {
	case size < 0:
		return nil, corruptf("a message of %d bytes", size)
	case size > maxBuffer:
		return nil, unsupportedf("a record batch of %d bytes, limit %d", size, maxBuffer)
	}
	m.mem.left = math.MaxInt
	body := memory.NewResizableBuffer(m.mem)
	defer body.Release()
	for have := 0; have < int(size); { // memory for at most twice what there is, whatever the length
		more := min(int(size)-have, max(have, leastBody))
		body.Resize(have + more)
		if _, err := io.ReadFull(r, body.Bytes()[have:]); err != nil {
			return nil, short(err)
		}
		have += more
	}
	m.mem.left = int(size)*maxExpansion + freeBytes
	if err := f.checkExpansion(root, body.Bytes()); err != nil {
		return nil, err
	}
	m.cur = ipc.NewMessage(memory.NewBufferBytes(metadata), body)
	return m.cur, nil
}

// short returns the error of a read within a message: its end is none of the stream.
func short(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return corruptf("it ends within a message")
	}
	return err
}

// Retain does nothing: a messages has one owner.
func (m *messages) Retain() {}

// Release releases the current message.
func (m *messages) Release() {
	if m.cur != nil {
		m.cur.Release()
		m.cur = nil
	}
}

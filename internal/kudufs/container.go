package kudufs

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/vfs"
)

// A protobuf container file is a header and records. The first record describes the others, which
// are messages of one kind. Integers are little-endian.
//
//	offset  width  field     meaning
//	0       8      magic     "kuducntr"
//	8       4      version   1 or 2; 2 is written
//	12      4      checksum  CRC-32C of the bytes before it; version 2 only
//
// A record of version 2, offsets from its start:
//
//	offset  width   field     meaning
//	0       4       length    of the message
//	4       4       checksum  CRC-32C of the length
//	8       length  message
//	…       4       checksum  CRC-32C of the message
//
// A record of version 1 has no checksum of the length; that at its end covers length and message.
//
// The header of version 2: 6b 75 64 75 63 6e 74 72 02 00 00 00 5f 08 2b b5. A file of
// kudu.BlockRecordPB continues with the description, which has an empty set of descriptors:
//
//	16 00 00 00 88 e8 46 65
//	0a 00 12 12 6b 75 64 75 2e 42 6c 6f 63 6b 52 65 63 6f 72 64 50 42
//	18 42 bf 5f
//
// Source: tablet spec §11.2.
const (
	containerMagic     = "kuducntr"          // file format: never change
	containerVersion   = 2                   // file format: never change
	containerHeaderLen = len(magicVersion2)  // of version 2
	containerV1Len     = 12                  // length of the header of version 1
	recordPrefixLen    = 8                   // length and checksum before a message
	recordOverhead     = recordPrefixLen + 4 // of a record of version 2
	recordV1Overhead   = 4 + 4               // of a record of version 1
	maxDescription     = 16 << 20            // most bytes of a first record; Kudu's have up to 20 KB
	magicVersion2      = containerMagic + "\x02\x00\x00\x00\x5f\x08\x2b\xb5"
)

// ErrIncomplete is the error of a container file that ends within a record, or in zeros. A server
// that ends while it appends a record leaves such a file. It is always wrapped together with
// ErrCorrupt, because in a file that is replaced as a whole it is damage.
var ErrIncomplete = errors.New("the file ends within a record")

// A ContainerReader reads the records of a protobuf container file. Not safe for concurrent use.
type ContainerReader struct {
	Type string // the name of the messages, as the file has it

	name      string
	src       io.ReaderAt
	r         *bufio.Reader
	off, size int64 // of the next record; of the file
	version   uint32
	buf       []byte
}

// NewContainerReader reads the header and the description of a container file of size bytes. name
// is for errors: ErrCorrupt, which may also be ErrIncomplete; ErrUnsupported for another version.
func NewContainerReader(name string, src io.ReaderAt, size int64) (*ContainerReader, error) {
	c := &ContainerReader{name: name, src: src, size: size,
		r: bufio.NewReaderSize(io.NewSectionReader(src, 0, size), 32<<10)}
	var head [containerHeaderLen]byte
	if size < containerV1Len {
		return nil, c.incomplete(0)
	}
	if err := c.read(head[:containerV1Len]); err != nil {
		return nil, err
	}
	if string(head[:len(containerMagic)]) != containerMagic {
		return nil, fault.Corruptf("%s: not a protobuf container file: it begins with %x", name,
			head[:len(containerMagic)])
	}
	c.version = binary.LittleEndian.Uint32(head[len(containerMagic):])
	switch c.version {
	case 1:
	case containerVersion:
		if size < int64(containerHeaderLen) {
			return nil, c.incomplete(0)
		}
		if err := c.read(head[containerV1Len:]); err != nil {
			return nil, err
		}
		if string(head[:]) != magicVersion2 {
			return nil, fault.Corruptf("%s: checksum of the header is %x", name, head[containerV1Len:])
		}
	default:
		return nil, fault.Unsupportedf("%s: container file of version %d", name, c.version)
	}
	b, err := c.Next(maxDescription)
	if err == io.EOF {
		err = c.incomplete(c.off)
	}
	if err != nil {
		return nil, err
	}
	var d kudupb.ContainerSupHeaderPB
	if err := proto.Unmarshal(b, &d); err != nil {
		return nil, fault.Corruptf("%s: description of the records: %v", name, err)
	}
	c.Type = d.GetPbType()
	return c, nil
}

// read reads the next len(b) bytes of the file.
func (c *ContainerReader) read(b []byte) error {
	if _, err := io.ReadFull(c.r, b); err != nil {
		return fmt.Errorf("%s: byte %d: %w", c.name, c.off, err)
	}
	c.off += int64(len(b))
	return nil
}

// incomplete returns the error of a record at off that the file does not contain in full. Kudu
// repairs only files of version 2.
func (c *ContainerReader) incomplete(off int64) error {
	if c.version == 1 {
		return fault.Corruptf("%s: byte %d: a record after the end of the file", c.name, off)
	}
	return fmt.Errorf("%s: byte %d: %w: %w", c.name, off, ErrIncomplete, fault.ErrCorrupt)
}

// Offset returns the position of the next record.
func (c *ContainerReader) Offset() int64 { return c.off }

// Next returns the next message, which is valid until the next call, or io.EOF after the last one.
// After an error the reader is at the record that it concerns. Messages longer than limit are
// ErrCorrupt. Errors: ErrCorrupt, which may also be ErrIncomplete; errors of reading the file.
func (c *ContainerReader) Next(limit int64) ([]byte, error) {
	start, left := c.off, c.size-c.off
	var prefix [recordPrefixLen]byte
	n, overhead := recordPrefixLen, int64(recordOverhead)
	if c.version == 1 {
		n, overhead = 4, recordV1Overhead
	}
	if left == 0 {
		return nil, io.EOF
	}
	if left < int64(n) {
		return nil, c.incomplete(start)
	}
	if err := c.read(prefix[:n]); err != nil {
		return nil, err
	}
	length := int64(binary.LittleEndian.Uint32(prefix[:]))
	if c.version != 1 {
		if prefix == [recordPrefixLen]byte{} {
			return nil, c.zeros(start)
		}
		if sum, want := binary.LittleEndian.Uint32(prefix[4:]), coding.CRC32C(prefix[:4]); sum != want {
			return nil, fault.Corruptf("%s: byte %d: crc of the length is %08x, want %08x", c.name, start, sum, want)
		}
	}
	switch {
	case length > left-overhead:
		return nil, c.incomplete(start)
	case length > limit:
		return nil, fault.Corruptf("%s: byte %d: a record of %d bytes, at most %d", c.name, start, length, limit)
	}
	if int64(cap(c.buf)) < length+4 {
		c.buf = make([]byte, length+4)
	}
	b := c.buf[:length+4]
	if err := c.read(b); err != nil {
		return nil, err
	}
	message := b[:length]
	sum, want := binary.LittleEndian.Uint32(b[length:]), coding.CRC32C(message)
	if c.version == 1 {
		want = coding.UpdateCRC32C(coding.CRC32C(prefix[:4]), message)
	}
	if sum != want {
		return nil, fault.Corruptf("%s: byte %d: crc of a record is %08x, want %08x", c.name, start, sum, want)
	}
	return message, nil
}

// zeros returns the error of a record without length and checksum: the file was preallocated, or
// its end was lost.
func (c *ContainerReader) zeros(start int64) error {
	buf := make([]byte, 64<<10)
	zero := make([]byte, len(buf))
	for {
		n, err := c.r.Read(buf)
		if !bytes.Equal(buf[:n], zero[:n]) {
			return fault.Corruptf("%s: byte %d: a record of zeros before other bytes", c.name, start)
		}
		if err == io.EOF {
			return c.incomplete(start)
		}
		if err != nil {
			return err
		}
	}
}

// AppendContainer appends a container file of messages to dst. kind is the name of the messages, as
// "kudu.tablet.TabletSuperBlockPB". It panics on messages without required fields.
func AppendContainer(dst []byte, kind string, messages ...proto.Message) []byte {
	dst = append(dst, magicVersion2...)
	dst = AppendRecord(dst, kudupb.EncodeRow(&kudupb.ContainerSupHeaderPB{Protos: []byte{}, PbType: &kind}))
	for _, m := range messages {
		dst = AppendRecord(dst, kudupb.EncodeRow(m))
	}
	return dst
}

// AppendRecord appends a record of a container file to dst.
func AppendRecord(dst, message []byte) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(message)))
	dst = binary.LittleEndian.AppendUint32(dst, coding.CRC32C(dst[at:]))
	dst = append(dst, message...)
	return binary.LittleEndian.AppendUint32(dst, coding.CRC32C(message))
}

// readMessage reads the one message of a container file into m, and ignores what comes after it.
// limit bounds the message's length in bytes. Errors: errors of opening the file, and every error
// of NewContainerReader and Next.
func readMessage(fsys vfs.FS, name string, limit int64, m proto.Message) error {
	f, err := fsys.Open(name, false)
	if err != nil {
		return err
	}
	defer f.Close() // read-only: the error does not matter
	size, err := f.Size()
	if err != nil {
		return err
	}
	return decodeFile(name, f, size, limit, m)
}

// decodeFile is readMessage of an open file of size bytes.
func decodeFile(name string, f io.ReaderAt, size, limit int64, m proto.Message) error {
	c, err := NewContainerReader(name, f, size)
	if err != nil {
		return err
	}
	b, err := c.Next(limit)
	if err == io.EOF {
		err = c.incomplete(c.off)
	}
	if err != nil {
		return err
	}
	if err := kudupb.CheckMemory(b, m); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := proto.Unmarshal(b, m); err != nil {
		return fault.Corruptf("%s: %v", name, err)
	}
	return nil
}

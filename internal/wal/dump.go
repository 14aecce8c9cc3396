package wal

import (
	"encoding/binary"
	"io"

	"github.com/zeebo/xxh3"

	"github.com/oribi-db/oribi/internal/dump"
)

// Dump prints the bytes of a segment with their meaning. Bytes that are not a frame are printed as
// such, and Dump continues with the next frame. The error is w's.
func Dump(w io.Writer, data []byte) error {
	d := segmentDump{Writer: dump.New(w), data: data}
	d.header()
	for d.off < len(d.data) {
		if f, ok := parseFooter(d.data[d.off:], d.number, d.seed); ok {
			d.footer(f)
		} else if f, problem := parseFrame(d.data[d.off:], d.number, d.seed); problem == "" {
			d.frame(f)
		} else {
			d.garbage(problem)
		}
	}
	return d.Err()
}

// segmentDump walks one segment.
type segmentDump struct {
	*dump.Writer
	data   []byte
	off    int
	number uint64
	seed   uint32
	chain  uint64
}

// field prints the next n bytes.
func (d *segmentDump) field(n int, meaning string, args ...any) []byte {
	b := d.data[d.off : d.off+n]
	d.Field(int64(d.off), b, meaning, args...)
	d.off += n
	return b
}

// num prints the next 1, 2, 4 or 8 bytes as a number.
func (d *segmentDump) num(n int, name string) {
	var b [8]byte
	copy(b[:], d.data[d.off:d.off+n])
	d.field(n, "%s %d", name, binary.LittleEndian.Uint64(b[:]))
}

// hex prints the next 4 or 8 bytes as a checksum.
func (d *segmentDump) hex(n int, name string) {
	var b [8]byte
	copy(b[:], d.data[d.off:d.off+n])
	d.field(n, "%s %0*x", name, 2*n, binary.LittleEndian.Uint64(b[:]))
}

func (d *segmentDump) header() {
	d.Section("segment header")
	defer d.End()
	h, problem, err := parseHeader(d.data)
	if len(d.data) < headerLen {
		d.Note("damaged: %s", problem)
		d.field(len(d.data), "no header")
		return
	}
	d.field(8, "magic")
	d.num(4, "version")
	d.hex(4, "must-know flags")
	d.hex(4, "may-ignore flags")
	instance := d.field(16, "instance")
	d.number = binary.LittleEndian.Uint64(d.data[d.off:])
	d.num(8, "number")
	d.num(8, "first LSN")
	d.num(8, "predecessor")
	d.num(8, "its length")
	d.hex(8, "its chain hash")
	d.hex(4, "crc")
	d.seed = seedCRC([16]byte(instance))
	switch {
	case problem != "":
		d.Note("damaged: %s", problem)
	case err != nil:
		d.Note("not usable: %v", err)
	default:
		d.chain = xxh3.Hash(h.encode())
	}
}

func (d *segmentDump) frame(f frame) {
	d.Section("frame")
	defer d.End()
	d.chain = nextChain(d.chain, d.data[d.off:])
	d.num(4, "length")
	d.num(1, "type")
	d.num(1, "last")
	d.num(2, "part")
	d.num(8, "segment")
	d.num(8, "LSN")
	d.num(8, "durable LSN")
	d.num(8, "external term")
	d.num(8, "external index")
	d.hex(8, "payload hash")
	d.hex(4, "payload crc")
	d.hex(4, "crc")
	if left := len(d.data) - d.off; left < padded(f.length) {
		d.field(left, "payload, torn")
		return
	}
	payload := d.field(f.length, "payload")
	if n := padded(f.length) - f.length; n > 0 {
		d.field(n, "padding")
	}
	if crc32c(payload) != f.check || xxh3.Hash(payload) != f.hash {
		d.Note("damaged: payload crc %08x, hash %016x", crc32c(payload), xxh3.Hash(payload))
	}
	d.Note("chain hash %016x", d.chain)
}

func (d *segmentDump) footer(f footer) {
	d.Section("footer")
	defer d.End()
	d.num(4, "length")
	d.num(1, "type")
	d.field(3, "zero")
	d.num(8, "segment")
	d.num(8, "last LSN")
	d.num(8, "durable LSN")
	d.hex(8, "chain hash")
	d.num(8, "bytes")
	d.num(4, "frames")
	d.hex(4, "crc")
	if f.chain != d.chain || f.bytes != int64(d.off) {
		d.Note("damaged: chain hash %016x, byte %d", d.chain, d.off)
	}
}

// garbage prints all bytes up to the next frame or footer.
func (d *segmentDump) garbage(problem string) {
	if zero(d.data[d.off:]) {
		d.Section("zeros after the end")
		d.field(len(d.data)-d.off, "for later records")
		d.End()
		return
	}
	d.Section("no frame: %s", problem)
	defer d.End()
	end := d.off + alignment
	for ; end < len(d.data); end += alignment {
		_, isFooter := parseFooter(d.data[end:], d.number, d.seed)
		if isFooter || frameIntact(d.data[end:], d.number, d.seed) {
			break
		}
	}
	d.field(min(end, len(d.data))-d.off, "unknown")
}

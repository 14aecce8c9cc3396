package kuduwal

import (
	"encoding/binary"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/dump"
	"github.com/oribi-db/oribi/internal/kudupb"
)

// Dump prints the bytes of a segment with their meaning, up to the first bytes that are not a batch
// of entries. The error is w's.
func Dump(w io.Writer, data []byte) error {
	d := segmentDump{Writer: dump.New(w), data: data, codec: compress.None, width: batchLen, end: len(data)}
	if d.header() {
		d.findFooter()
		for d.off < d.end && d.batch() {
		}
		if d.off < d.end {
			d.field(d.end-d.off, "after the last batch")
		}
		d.footer()
	}
	return d.Err()
}

type segmentDump struct {
	*dump.Writer
	data     []byte
	off, end int // end of the batches
	codec    compress.Codec
	width    int
}

func (d *segmentDump) field(n int, meaning string, args ...any) []byte {
	b := d.data[d.off : d.off+n]
	d.Field(int64(d.off), b, meaning, args...)
	d.off += n
	return b
}

func (d *segmentDump) num(meaning string) int {
	n := binary.LittleEndian.Uint32(d.data[d.off:])
	d.field(lengthLen, "%s: %d", meaning, n)
	return int(n)
}

func (d *segmentDump) header() bool {
	d.Section("segment header")
	defer d.End()
	if len(d.data) < headLen {
		d.field(len(d.data), "no header")
		return false
	}
	d.field(len(headMagic), "magic")
	n := d.num("length of the message")
	if n > len(d.data)-d.off {
		d.field(len(d.data)-d.off, "message, cut off")
		return false
	}
	var h kudupb.LogSegmentHeaderPB
	if err := unmarshal(d.field(n, "message"), &h); err != nil {
		d.Note("damaged: %v", err)
		return false
	}
	d.Note("tablet %s, segment %d, schema version %d, codec %d", h.GetTabletId(), h.GetSequenceNumber(),
		h.GetSchemaVersion(), h.GetCompressionCodec())
	if codec, err := compress.Lookup(h.GetCompressionCodec()); err == nil {
		d.codec = codec
	}
	if h.DeprecatedMajorVersion != nil {
		d.width = oldBatchLen
	}
	return true
}

// findFooter sets d.end to the beginning of the footer. A segment that was not closed has no
// footer; then d.end stays at the end of the file.
func (d *segmentDump) findFooter() {
	at := len(d.data) - tailLen
	if at < d.off || string(d.data[at:at+len(footMagic)]) != footMagic {
		return
	}
	if n := int(binary.LittleEndian.Uint32(d.data[at+len(footMagic):])); n <= at-d.off {
		d.end = at - n
	}
}

func (d *segmentDump) footer() {
	if d.off == len(d.data) {
		return
	}
	d.Section("segment footer")
	defer d.End()
	var f kudupb.LogSegmentFooterPB
	err := unmarshal(d.field(len(d.data)-tailLen-d.off, "message"), &f)
	d.field(len(footMagic), "magic")
	d.num("length of the message")
	if err != nil {
		d.Note("damaged: %v", err)
		return
	}
	d.Note("%d entries, operations %d to %d", f.GetNumEntries(), f.GetMinReplicateIndex(), f.GetMaxReplicateIndex())
}

// batch prints a batch. It returns false if no batch begins at d.off.
func (d *segmentDump) batch() bool {
	if d.end-d.off < d.width {
		return false
	}
	h, ok := parseBatchHeader(d.data[d.off:], d.width)
	if !ok || int64(h.stored) > int64(d.end-d.off-d.width) {
		return false
	}
	d.Section("batch of entries")
	defer d.End()
	d.num("length as stored")
	if d.width == batchLen {
		d.num("length")
	}
	d.field(4, "crc %08x", h.crc)
	d.field(4, "crc of the header")
	r := Reader{codec: d.codec, stored: d.field(int(h.stored), "entries")}
	if h.payload > MaxBatchBytes {
		d.Note("too large")
	} else if err := r.unpack(h); err != nil {
		d.Note("damaged: %v", err)
	} else {
		d.entries(r.rest)
	}
	return true
}

// entries prints one line for each entry.
func (d *segmentDump) entries(b []byte) {
	for {
		message, rest, ok := nextMessage(b, protowire.Number(1))
		if !ok {
			d.Note("malformed")
			return
		}
		if message == nil {
			return
		}
		b = rest
		var e kudupb.LogEntryPB
		if err := unmarshal(message, &e); err != nil {
			d.Note("entry: %v", err)
			continue
		}
		d.Note("%s", describe(&e))
	}
}

// describe returns one line about an entry.
func describe(e *kudupb.LogEntryPB) string {
	if m := e.GetReplicate(); m != nil {
		return fmt.Sprintf("REPLICATE %s at %d: %s", idText(m.GetId()), m.GetTimestamp(), OperationName(m.GetOpType()))
	}
	if c := e.GetCommit(); c != nil {
		return fmt.Sprintf("COMMIT %s: %s", idText(c.GetCommitedOpId()), OperationName(c.GetOpType()))
	}
	return fmt.Sprintf("entry of type %d", e.GetType())
}

// OperationName returns Kudu's name of a type of operations.
func OperationName(kind int32) string {
	if name, ok := kudupb.OperationType_name[kind]; ok {
		return name
	}
	return fmt.Sprintf("operation of type %d", kind)
}

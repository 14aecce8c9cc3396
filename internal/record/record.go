// Package record encodes a committed write batch as the payload of a log record.
//
// A Writer appends the resolved operations of one batch; Decode reads them back in order. The
// bodies of operations are row images and lists of package change, which Decode does not interpret.
// A Writer is for use by one goroutine; the functions are safe for concurrent use. The results of
// Decode alias the payload.
package record

import (
	"encoding/binary"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
)

// Op is one resolved operation of a committed write batch.
type Op struct {
	Table uint32 // number of the table in its store
	// SchemaVersion is the version of the table's schema by which Body is read. All operations of a
	// table in one record have the same.
	SchemaVersion uint32
	Kind          change.Kind // Insert, Update, Delete, Replace or DeleteRange
	Key           []byte      // encoded primary key; DeleteRange: the lower bound
	// Body is a row image of an Insert or a Replace, a List of an Update, nil of a Delete, and the upper
	// bound of a DeleteRange, which is empty if there is none.
	Body []byte
}

// Record of one committed write batch: the payload of a log record.
//
//	offset  width  field
//	0       1      version, 1
//	1       1      flags that a reader must know: 1 = the last field is there, 2 = an operation has
//	               kind 5, 4 = the batch is empty, 8 = an operation has kind 6; other bits are 0
//	2       8      timestamp of the batch
//	10      4      number of operations
//	14             runs of operations on one table, in the order of the batch; a table may have several:
//	        1–5    table number, varint
//	        1–5    schema version of the table, varint
//	        4      number of operations of the run, at least 1
//	               the operations:
//	        1      kind: 1 update, 2 delete, 4 insert, 5 replacement of a row that exists, 6 delete of
//	               all rows that exist with encoded keys in [lower, upper). They come before all others
//	        1–5    length of the encoded key, varint
//	               the encoded key; of kind 6, lower
//	        1–5    length of the body, varint; not for a delete
//	               the body: row image of an insert or a replacement, List of an update; not for a
//	               delete. The image of a replacement has the key cells of the row. Of kind 6, upper,
//	               which is empty if no row comes after the range
//	size-8  8      with flag 1: epoch, at least 1, that the metadata had for good when the record was written
//
// With flag 4 there are no operations: the record contains only a timestamp that was returned to a
// caller, such as the timestamp of a write batch that changes nothing. Later records have higher
// timestamps, also after a kill.
//
// Without flag 4, a record without operations and epoch announces a change whose rows are not in
// the log: an ingest, or the change of an expiry rule. Its metadata commit follows, unless it fails
// or the process is killed. A record without flag 4 and operations, but with an epoch, is written
// when none of these is in flight: what was announced before, and is not in the metadata, will
// never be.
//
// Timestamp 0x1000, on table 3, schema version 0: update of key 80 00 00 07 with 01 0b 05 05 00 00
// 00, delete of key 80 00 00 08:
//
//	01 00 00 10 00 00 00 00 00 00 02 00 00 00
//	03 00 02 00 00 00
//	01 04 80 00 00 07 07 01 0b 05 05 00 00 00
//	02 04 80 00 00 08
//
// The same with confirmed epoch 5: byte 1 is 01, and the operations are followed by
//
//	05 00 00 00 00 00 00 00
//
// Timestamp 0x1001, on table 3, schema version 0: the row with key 80 00 00 07 is replaced by
// (INT32 7, INT32 5):
//
//	01 02 01 10 00 00 00 00 00 00 01 00 00 00
//	03 00 01 00 00 00
//	05 04 80 00 00 07 08 07 00 00 00 05 00 00 00
//
// Timestamp 0x1002, an empty write batch:
//
//	01 04 02 10 00 00 00 00 00 00 00 00 00 00
//
// Timestamp 0x1003, on table 3, schema version 0: all rows with keys from 80 00 00 07 on and below 80
// 00 01 are deleted:
//
//	01 08 03 10 00 00 00 00 00 00 01 00 00 00
//	03 00 01 00 00 00
//	06 04 80 00 00 07 03 80 00 01
const (
	formatVersion  = 1  // file format: never change
	flagEpoch      = 1  // file format: never change
	flagReplace    = 2  // file format: never change
	flagEmpty      = 4  // file format: never change
	flagRange      = 8  // file format: never change
	timestampOff   = 2  // file format: never change
	recordCountOff = 10 // file format: never change
	recordHeadLen  = 14 // file format: never change
	runCountLen    = 4  // file format: never change
	epochLen       = 8  // file format: never change
)

// Writer makes the record of one write batch. The zero value is ready for Begin; its memory
// is used again by the next Begin. Not for concurrent use.
type Writer struct {
	buf      []byte
	ops      uint32
	runAt    int // offset of the current run's count
	runOps   uint32
	table    uint32
	version  uint32
	runBegun bool
}

// Begin starts a new record; the one before is gone. ts may be given later, by SetTimestamp.
func (w *Writer) Begin(ts mvcc.Timestamp) {
	w.buf = append(w.buf[:0], formatVersion, 0)
	w.buf = binary.LittleEndian.AppendUint64(w.buf, uint64(ts))
	w.buf = binary.LittleEndian.AppendUint32(w.buf, 0)
	w.ops, w.runOps, w.runBegun = 0, 0, false
}

// SetTimestamp replaces the timestamp: operations are written before the batch has its place in
// time.
func (w *Writer) SetTimestamp(ts mvcc.Timestamp) {
	binary.LittleEndian.PutUint64(w.buf[timestampOff:], uint64(ts))
}

// SetEmpty makes the record the record of an empty write batch, without operations.
func (w *Writer) SetEmpty() { w.buf[1] |= flagEmpty }

// Announces reports whether the record, if Require is not called, announces a change.
func (w *Writer) Announces() bool { return w.ops == 0 && w.buf[1]&flagEmpty == 0 }

// Require records that the metadata has confirmed an epoch, at least 1: a store whose metadata is
// at an earlier epoch has lost changes that the log does not contain. Call it once, after all
// operations.
func (w *Writer) Require(epoch uint64) {
	w.buf[1] |= flagEpoch
	w.buf = binary.LittleEndian.AppendUint64(w.buf, epoch)
}

// Add appends an operation; it copies key and body. Operations keep the order in which they are
// added; those of kind DeleteRange come first.
func (w *Writer) Add(op Op) {
	if !w.runBegun || op.Table != w.table || op.SchemaVersion != w.version {
		w.table, w.version, w.runOps, w.runBegun = op.Table, op.SchemaVersion, 0, true
		w.buf = coding.AppendUvarint32(w.buf, op.Table)
		w.buf = coding.AppendUvarint32(w.buf, op.SchemaVersion)
		w.runAt = len(w.buf)
		w.buf = binary.LittleEndian.AppendUint32(w.buf, 0)
	}
	switch op.Kind {
	case change.Replace:
		w.buf[1] |= flagReplace
	case change.DeleteRange:
		w.buf[1] |= flagRange
	}
	w.ops++
	w.runOps++
	binary.LittleEndian.PutUint32(w.buf[recordCountOff:], w.ops)
	binary.LittleEndian.PutUint32(w.buf[w.runAt:], w.runOps)
	w.buf = append(w.buf, byte(op.Kind))
	w.buf = coding.AppendUvarint32(w.buf, uint32(len(op.Key)))
	w.buf = append(w.buf, op.Key...)
	if op.Kind != change.Delete {
		w.buf = coding.AppendUvarint32(w.buf, uint32(len(op.Body)))
		w.buf = append(w.buf, op.Body...)
	}
}

// Len is the number of operations.
func (w *Writer) Len() int { return int(w.ops) }

// Bytes is the record; it holds until the next call of Begin, Add, SetEmpty or Require.
func (w *Writer) Bytes() []byte { return w.buf }

// Head has the content of a record except for its operations.
type Head struct {
	Timestamp  mvcc.Timestamp
	Operations uint32
	Epoch      uint64 // that the metadata has reached for good; 0 if the record has none
	Empty      bool   // an empty write batch: its timestamp was returned to a caller
}

// Announces reports whether the record gives a change outside the log its timestamp: an ingest, or
// the change of an expiry rule, whose metadata commit follows, or does not.
func (h *Head) Announces() bool { return h.Operations == 0 && !h.Empty && h.Epoch == 0 }

// Aborts reports whether the record aborts the changes announced before it that the metadata does
// not have.
func (h *Head) Aborts() bool { return h.Operations == 0 && !h.Empty && h.Epoch > 0 }

// DecodeHead reads it. Errors: ErrCorrupt, ErrUnsupported.
func DecodeHead(payload []byte) (h Head, err error) {
	h, _, err = split(payload)
	return h, err
}

// split gives the head and where the operations end.
func split(payload []byte) (h Head, end int, err error) {
	end = len(payload)
	if end < recordHeadLen {
		return h, 0, fault.Corruptf("write batch record: %d bytes, want at least %d", end, recordHeadLen)
	}
	if payload[0] != formatVersion || payload[1]&^(flagEpoch|flagReplace|flagEmpty|flagRange) != 0 {
		return h, 0, fault.Unsupportedf("write batch record: version %d, flags %02x", payload[0], payload[1])
	}
	h.Timestamp = mvcc.Timestamp(binary.LittleEndian.Uint64(payload[timestampOff:]))
	h.Operations = binary.LittleEndian.Uint32(payload[recordCountOff:])
	h.Empty = payload[1]&flagEmpty != 0
	if h.Empty && h.Operations > 0 {
		return h, 0, fault.Corruptf("write batch record: %d operations of an empty write batch", h.Operations)
	}
	if payload[1]&flagEpoch == 0 {
		return h, end, nil
	}
	if end -= epochLen; end < recordHeadLen {
		return h, 0, fault.Corruptf("write batch record: %d bytes, want at least %d", len(payload),
			recordHeadLen+epochLen)
	}
	if h.Epoch = binary.LittleEndian.Uint64(payload[end:]); h.Epoch == 0 {
		return h, 0, fault.Corruptf("write batch record: byte %d of %d: epoch 0", end, len(payload))
	}
	return h, end, nil
}

// Decode reads a record and calls fn for its operations in order, up to the first error of fn. Key
// and body alias payload. Bodies are not checked: the caller passes an insert's to
// change.RowFormat.Check, likewise a replacement's, and an update's to change.List.Check, with the
// schema of the given version. The bounds of a range are any bytes, and may be in any order.
//
// Errors: ErrCorrupt, ErrUnsupported, the errors of fn.
func Decode(payload []byte, fn func(op Op) error) (mvcc.Timestamp, error) {
	h, end, err := split(payload)
	if err != nil {
		return 0, err
	}
	want := binary.LittleEndian.Uint32(payload[recordCountOff:])
	d := newReader(payload, end)
	ops := uint32(0)
	for len(d.rest) > 0 {
		table, version, n, err := d.run()
		if err != nil {
			return 0, err
		}
		for range n {
			op, err := d.op()
			if err != nil {
				return 0, err
			}
			op.Table, op.SchemaVersion = table, version
			if err := fn(op); err != nil {
				return 0, err
			}
			ops++
		}
	}
	if ops != want {
		return 0, fault.Corruptf("write batch record: %d operations, want %d", ops, want)
	}
	return h.Timestamp, nil
}

// reader takes a record apart.
type reader struct {
	rest     []byte
	size     int  // where the operations end
	replaces bool // flagReplace is set
	ranges   bool // flagRange is set
	rows     bool // an operation on a row was read
}

func newReader(payload []byte, end int) reader {
	return reader{rest: payload[recordHeadLen:end:end], size: end, replaces: payload[1]&flagReplace != 0,
		ranges: payload[1]&flagRange != 0}
}

func (d *reader) corrupt(what string) error {
	return fault.Corruptf("write batch record: byte %d of %d: bad %s", d.size-len(d.rest), d.size, what)
}

func (d *reader) uvarint(what string) (uint32, error) {
	v, n, ok := coding.Uvarint32(d.rest)
	if !ok {
		return 0, d.corrupt(what)
	}
	d.rest = d.rest[n:]
	return v, nil
}

func (d *reader) bytes(what string) ([]byte, error) {
	n, err := d.uvarint(what)
	if err != nil {
		return nil, err
	}
	if uint64(n) > uint64(len(d.rest)) {
		return nil, d.corrupt(what)
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b, nil
}

// run reads the head of a run. Its count needs no bound: every operation takes bytes, which run
// out.
func (d *reader) run() (table, version, n uint32, err error) {
	if table, err = d.uvarint("table number"); err != nil {
		return 0, 0, 0, err
	}
	if version, err = d.uvarint("schema version"); err != nil {
		return 0, 0, 0, err
	}
	if len(d.rest) < runCountLen {
		return 0, 0, 0, d.corrupt("count of a run")
	}
	if n = binary.LittleEndian.Uint32(d.rest); n == 0 {
		return 0, 0, 0, d.corrupt("count of a run")
	}
	d.rest = d.rest[runCountLen:]
	return table, version, n, nil
}

func (d *reader) op() (op Op, err error) {
	if len(d.rest) == 0 {
		return op, d.corrupt("kind of an operation")
	}
	op.Kind = change.Kind(d.rest[0])
	switch {
	case op.Kind == change.Update, op.Kind == change.Delete, op.Kind == change.Insert:
	case op.Kind == change.Replace && d.replaces, op.Kind == change.DeleteRange && d.ranges && !d.rows:
	default:
		return op, d.corrupt("kind of an operation")
	}
	d.rest, d.rows = d.rest[1:], d.rows || op.Kind != change.DeleteRange
	if op.Key, err = d.bytes("key"); err != nil || op.Kind == change.Delete {
		return op, err
	}
	op.Body, err = d.bytes("body")
	return op, err
}

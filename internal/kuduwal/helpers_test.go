package kuduwal

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// appendBatch appends a batch of entries with its header.
func appendBatch(dst, stored []byte, payloadLen int) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(stored)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(payloadLen))
	dst = binary.LittleEndian.AppendUint32(dst, coding.CRC32C(stored))
	dst = binary.LittleEndian.AppendUint32(dst, coding.CRC32C(dst[at:]))
	return append(dst, stored...)
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	return must.Get(proto.MarshalOptions{Deterministic: true}.Marshal(m))(t)
}

// testSchema is the schema in the example of an encoded row: two of its columns can be NULL.
func testSchema() *kudupb.SchemaPB {
	column := func(id uint32, name string, kind kudupb.DataType, key bool) *kudupb.ColumnSchemaPB {
		return &kudupb.ColumnSchemaPB{Id: &id, Name: &name, Type: proto.Int32(int32(kind)), IsKey: &key,
			IsNullable: proto.Bool(!key)}
	}
	return &kudupb.SchemaPB{Columns: []*kudupb.ColumnSchemaPB{
		column(0, "k", kudupb.DataType_INT32, true), column(1, "fixed", kudupb.DataType_STRING, false),
		column(2, "free", kudupb.DataType_INT64, false),
	}}
}

// appendHeader appends the header of a segment.
func appendHeader(t testing.TB, dst []byte, number uint64, codec compress.Codec) []byte {
	h := marshal(t, &kudupb.LogSegmentHeaderPB{
		TabletId: []byte("tablet"), SequenceNumber: &number, Schema: marshal(t, testSchema()),
		SchemaVersion:    proto.Uint32(0),
		CompressionCodec: proto.Int32(int32(codec)),
	})
	dst = append(dst, headMagic...)
	return append(binary.LittleEndian.AppendUint32(dst, uint32(len(h))), h...)
}

func appendFooter(t testing.TB, dst []byte, f *kudupb.LogSegmentFooterPB) []byte {
	m := marshal(t, f)
	dst = append(append(dst, m...), footMagic...)
	return binary.LittleEndian.AppendUint32(dst, uint32(len(m)))
}

// appendEntries appends one batch of entries.
func appendEntries(t testing.TB, dst []byte, codec compress.Codec, entries ...*kudupb.LogEntryPB) []byte {
	payload := marshal(t, &kudupb.LogEntryBatchPB{Entry: entries})
	stored := payload
	if codec != compress.None {
		stored = must.Get(codec.Compress(nil, payload))(t)
	}
	return appendBatch(dst, stored, len(payload))
}

func opID(term, index int64) *kudupb.OpId { return &kudupb.OpId{Term: &term, Index: &index} }

func replicate(term, index int64) *kudupb.LogEntryPB {
	return &kudupb.LogEntryPB{Type: proto.Int32(int32(kudupb.LogEntryTypePB_REPLICATE)),
		Replicate: &kudupb.ReplicateMsg{
			Id: opID(term, index), Timestamp: proto.Uint64(uint64(100 * index)),
			OpType: proto.Int32(int32(kudupb.OperationType_NO_OP)),
		}}
}

func commit(term, index int64) *kudupb.LogEntryPB {
	return &kudupb.LogEntryPB{Type: proto.Int32(int32(kudupb.LogEntryTypePB_COMMIT)), Commit: &kudupb.CommitMsg{
		OpType: proto.Int32(int32(kudupb.OperationType_NO_OP)), CommitedOpId: opID(term, index),
	}}
}

// segmentOf returns a segment with one entry in each batch.
func segmentOf(t testing.TB, number uint64, codec compress.Codec, entries ...*kudupb.LogEntryPB) []byte {
	b := appendHeader(t, nil, number, codec)
	for _, e := range entries {
		b = appendEntries(t, b, codec, e)
	}
	return b
}

// writeLog makes a log of segments from number 1 on.
func writeLog(t testing.TB, segments ...[]byte) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem()
	for i, s := range segments {
		writeFile(t, m, segmentPath(i+1), s)
	}
	return m
}

func segmentPath(n int) string {
	return filepath.Join("/", fmt.Sprintf("wal-%09d", n))
}

func writeFile(t testing.TB, m *vfs.Mem, name string, content []byte) {
	t.Helper()
	f := must.Get(m.Create(name))(t)
	must.Get(f.WriteAt(content, 0))(t)
	must.Do(t, f.Close())
}

// replayLog returns a line for each call of a handler.
func replayLog(t testing.TB, m *vfs.Mem) (calls []string, sum *Summary, err error) {
	sum, err = Replay(m, "/", Handler{
		Begin: func(*kudupb.LogSegmentHeaderPB) error { return nil },
		Apply: func(op *Operation) error {
			line := idText(op.Msg.GetId())
			if op.Commit == nil {
				line += "?"
			}
			calls = append(calls, line)
			return nil
		},
		Orphan: func(c *kudupb.CommitMsg) error {
			calls = append(calls, "orphan "+idText(c.GetCommitedOpId()))
			return nil
		},
	})
	return calls, sum, err
}

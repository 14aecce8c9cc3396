package kuduwal

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/must"
)

// write returns an operation that writes rows, and its result.
func write(t testing.TB, index int64, rows []byte, indirect string, results ...byte) []*kudupb.LogEntryPB {
	r, c := replicate(1, index), commit(1, index)
	r.Replicate.OpType = proto.Int32(int32(kudupb.OperationType_WRITE_OP))
	c.Commit.OpType = r.Replicate.OpType
	r.Replicate.WriteRequest = request(t, testSchema(), rows, []byte(indirect))
	c.Commit.Result = results
	return []*kudupb.LogEntryPB{r, c}
}

// read replays a log and decodes what it has.
func read(t *testing.T, segments ...[]byte) {
	d := testDecoder(t)
	_, err := Replay(writeLog(t, segments...), "/", Handler{
		Begin: func(h *kudupb.LogSegmentHeaderPB) error {
			_, err := DecodeSchema(h.GetSchema())
			return err
		},
		Apply: func(op *Operation) error {
			if op.Msg.WriteRequest == nil {
				return nil
			}
			return d.Each(op.Msg.WriteRequest, func(r *Row) error {
				if r.Problem != "" {
					return nil
				}
				if r.Kind == Insert || r.Kind == Upsert {
					must.Do(t, d.format.Check(d.Image(r, nil)))
				}
				if list, ok := d.Change(r, nil); ok && len(list) > 0 {
					must.Do(t, list.Check(d.last))
				}
				return nil
			})
		},
		Orphan: func(c *kudupb.CommitMsg) error {
			results := NewResults(c)
			for {
				if r, err := results.Next(); r == nil || err != nil {
					return err
				}
			}
		},
	})
	if err != nil && !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) {
		t.Errorf("got error %v", err)
	}
}

// FuzzSegment reads the input as a segment.
func FuzzSegment(f *testing.F) {
	entries := append(write(f, 1, row(kudupb.RowOperationType_INSERT, 1, "abc", 7), "abc", 0x0a, 4, 0x1a, 2, 8, 0),
		replicate(1, 2))
	for _, codec := range []compress.Codec{compress.None, compress.LZ4, compress.Snappy, compress.Zlib} {
		f.Add(segmentOf(f, 1, codec, entries...))
	}
	closed := appendFooter(f, segmentOf(f, 1, compress.LZ4, entries...),
		&kudupb.LogSegmentFooterPB{NumEntries: proto.Int64(3)})
	f.Add(closed)
	f.Add(append(bytes.Clone(closed[:len(closed)-5]), make([]byte, 40)...))
	fuzztest.Run(f, func(t *testing.T, data []byte) {
		must.Do(t, Dump(io.Discard, data))
		read(t, data)
	})
}

// FuzzEntries reads the input as entries whose checksums are right, in two segments.
func FuzzEntries(f *testing.F) {
	payload := func(entries []*kudupb.LogEntryPB) []byte { return marshal(f, &kudupb.LogEntryBatchPB{Entry: entries}) }
	insert := write(f, 1, row(kudupb.RowOperationType_INSERT, 1, "abc", 7), "abc", 0x0a, 4, 0x1a, 2, 8, 0)
	change := write(f, 2, append(row(kudupb.RowOperationType_UPDATE, 1, "NULL"),
		row(kudupb.RowOperationType_DELETE_ROW, 1)...), "")
	f.Add(payload(insert), payload(change))
	f.Add(payload(insert[1:]), payload(change))
	f.Add(payload([]*kudupb.LogEntryPB{replicate(1, 1), replicate(2, 1)}), payload([]*kudupb.LogEntryPB{commit(2, 1)}))
	fuzztest.Run(f, func(t *testing.T, a, b []byte) {
		segments := [][]byte{appendHeader(t, nil, 1, compress.None), appendHeader(t, nil, 2, compress.None)}
		for i, payload := range [][]byte{a, b} {
			if len(payload) > 0 {
				segments[i] = appendBatch(segments[i], payload, len(payload))
			}
		}
		read(t, segments...)
	})
}

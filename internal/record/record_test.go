package record

import (
	"bytes"
	"cmp"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
)

const workedRecord = `
	01 00 00 10 00 00 00 00 00 00 02 00 00 00
	03 00 02 00 00 00
	01 04 80 00 00 07 07 01 0b 05 05 00 00 00
	02 04 80 00 00 08`

func workedOps() []Op {
	return []Op{
		{Table: 3, Kind: change.Update, Key: []byte{0x80, 0, 0, 7},
			Body: change.AppendColumn(change.AppendUpdateHeader(nil, change.Update), 11, []byte{5, 0, 0, 0})},
		{Table: 3, Kind: change.Delete, Key: []byte{0x80, 0, 0, 8}},
	}
}

func TestRecordMatchesTheWorkedExample(t *testing.T) {
	var w Writer
	w.Begin(1)
	for _, op := range workedOps() {
		w.Add(op)
	}
	w.SetTimestamp(0x1000)
	want := must.Hex(t, workedRecord)
	must.Equal(t, w.Bytes(), want)
	must.Equal(t, w.Len(), 2)
	got, ts := decode(t, want)
	must.Equal(t, ts, 0x1000)
	must.Equal(t, got, workedOps())
	must.Equal(t, must.Get(DecodeHead(want))(t), (Head{Timestamp: 0x1000, Operations: 2}))
	w.Require(5)
	want = append(want, 5, 0, 0, 0, 0, 0, 0, 0)
	want[1] = 1
	must.Equal(t, w.Bytes(), want)
	if got, ts := decode(t, want); ts != 0x1000 || !reflect.DeepEqual(got, workedOps()) {
		t.Errorf("with an epoch: got %d %+v", ts, got)
	}
	must.Equal(t, must.Get(DecodeHead(want))(t), (Head{Timestamp: 0x1000, Operations: 2, Epoch: 5}), "with an epoch")
}

const replaceRecord = `
	01 02 01 10 00 00 00 00 00 00 01 00 00 00
	03 00 01 00 00 00
	05 04 80 00 00 07 08 07 00 00 00 05 00 00 00`

// TestReplacementMatchesTheWorkedExample also checks that a record without a replacement after it
// can be read by programs that do not know replacements.
func TestReplacementMatchesTheWorkedExample(t *testing.T) {
	ops := []Op{{Table: 3, Kind: change.Replace, Key: []byte{0x80, 0, 0, 7}, Body: []byte{7, 0, 0, 0, 5, 0, 0, 0}}}
	var w Writer
	w.Begin(0x1001)
	w.Add(ops[0])
	must.Equal(t, w.Bytes(), must.Hex(t, replaceRecord))
	if got, ts := decode(t, must.Hex(t, replaceRecord)); ts != 0x1001 || !reflect.DeepEqual(got, ops) {
		t.Errorf("got %d %+v", ts, got)
	}
	w.Require(5)
	must.Equal(t, must.Get(DecodeHead(w.Bytes()))(t), (Head{Timestamp: 0x1001, Operations: 1, Epoch: 5}),
		"with an epoch")
	w.Begin(0x1000)
	for _, op := range workedOps() {
		w.Add(op)
	}
	must.Equal(t, w.Bytes(), must.Hex(t, workedRecord), "without replacements")
}

const rangeRecord = `
	01 08 03 10 00 00 00 00 00 00 01 00 00 00
	03 00 01 00 00 00
	06 04 80 00 00 07 03 80 00 01`

func TestDeletedRangeMatchesTheWorkedExample(t *testing.T) {
	ops := []Op{{Table: 3, Kind: change.DeleteRange, Key: []byte{0x80, 0, 0, 7}, Body: []byte{0x80, 0, 1}}}
	var w Writer
	w.Begin(0x1003)
	w.Add(ops[0])
	must.Equal(t, w.Bytes(), must.Hex(t, rangeRecord))
	got, ts := decode(t, w.Bytes())
	must.Equal(t, ts, 0x1003)
	must.Equal(t, got, ops)
	var out bytes.Buffer
	must.Do(t, Dump(&out, w.Bytes()))
	must.Contain(t, out.String(), "delete range from key 80000007, below key 800001\n", "a line")
}

const emptyRecord = "01 04 02 10 00 00 00 00 00 00 00 00 00 00"

// An empty write batch neither announces a change nor aborts announced ones, also if its
// record has an epoch.
func TestEmptyBatchMatchesTheWorkedExample(t *testing.T) {
	var w Writer
	w.Begin(0x1002)
	must.Equal(t, w.Announces(), true, "a record of nothing does not announce a change")
	w.SetEmpty()
	if want := must.Hex(t, emptyRecord); !bytes.Equal(w.Bytes(), want) || w.Announces() {
		t.Errorf("got % x, announces: %v; want % x", w.Bytes(), w.Announces(), want)
	}
	if got, ts := decode(t, must.Hex(t, emptyRecord)); ts != 0x1002 || len(got) != 0 {
		t.Errorf("got %d %+v", ts, got)
	}
	for _, epoch := range []uint64{0, 5} {
		w.Begin(0x1002)
		w.SetEmpty()
		if epoch > 0 {
			w.Require(epoch)
		}
		h, err := DecodeHead(w.Bytes())
		if h != (Head{Timestamp: 0x1002, Epoch: epoch, Empty: true}) || err != nil || h.Announces() || h.Aborts() {
			t.Errorf("epoch %d: %+v, announces: %v, aborts: %v, %v", epoch, h, h.Announces(), h.Aborts(), err)
		}
	}
	w.Begin(0x1002) // of the same Writer
	if h, err := DecodeHead(w.Bytes()); h.Empty || !h.Announces() || err != nil {
		t.Errorf("the next record: %+v, %v", h, err)
	}
}

func decode(t testing.TB, payload []byte) (ops []Op, ts mvcc.Timestamp) {
	t.Helper()
	ts = must.Get(Decode(payload, func(op Op) error { ops = append(ops, op); return nil }))(t)
	return ops, ts
}

func drawOp(rt *rapid.T) Op {
	op := Op{Table: rapid.SampledFrom([]uint32{0, 1, 127, 128, 1<<32 - 1}).Draw(rt, "table"),
		Kind: rapid.SampledFrom([]change.Kind{change.Insert, change.Update, change.Delete,
			change.Replace, change.DeleteRange}).Draw(rt, "kind"),
		Key: append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(rt, "key")...)}
	op.SchemaVersion = op.Table % 3
	if op.Kind != change.Delete {
		op.Body = make([]byte, rapid.SampledFrom([]int{0, 1, 127, 128}).Draw(rt, "body"))
	}
	return op
}

func TestOperationsKeepTheirOrder(t *testing.T) {
	var w Writer // one for all: memory is used again
	seedtest.Check(t, func(rt *rapid.T) {
		ts := mvcc.Timestamp(rapid.Uint64().Draw(rt, "ts"))
		w.Begin(ts)
		var want []Op
		for range rapid.IntRange(0, 8).Draw(rt, "ops") {
			want = append(want, drawOp(rt))
		}
		slices.SortStableFunc(want, func(a, b Op) int {
			return cmp.Compare(b.Kind/change.DeleteRange, a.Kind/change.DeleteRange)
		})
		for _, op := range want {
			w.Add(op)
		}
		got, gotTS := decode(t, w.Bytes())
		if gotTS != ts || !reflect.DeepEqual(got, want) {
			rt.Fatalf("got %d %+v\nwant %d %+v", gotTS, got, ts, want)
		}
	})
}

func TestDamagedRecordsAreRefusedOrReadable(t *testing.T) {
	good := must.Hex(t, workedRecord)
	try := func(payload []byte) error {
		_, err := Decode(payload, func(Op) error { return nil })
		if err != nil && !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) {
			t.Errorf("% x: %v", payload, err)
		}
		_ = Dump(&bytes.Buffer{}, payload)
		return err
	}
	for i := range good {
		must.Refuse(t, try(good[:i]), "cut at", i)
		for bit := range 8 {
			bent := bytes.Clone(good)
			bent[i] ^= 1 << bit
			_ = try(bent)
		}
	}
	for name, c := range map[string]struct {
		payload string
		want    error
	}{
		"newer version":   {"02 00" + strings.Repeat("00", 12), fault.ErrUnsupported},
		"unknown flag":    {"01 10" + strings.Repeat("00", 12), fault.ErrUnsupported},
		"unknown flags":   {"01 1f" + strings.Repeat("00", 12), fault.ErrUnsupported},
		"kind 5, no flag": {strings.Replace(replaceRecord, "01 02", "01 00", 1), fault.ErrCorrupt},
		"kind 6, no flag": {strings.Replace(rangeRecord, "01 08", "01 02", 1), fault.ErrCorrupt},
		"kind 6, not first": {"01 08 03 10 00 00 00 00 00 00 02 00 00 00 03 00 02 00 00 00 02 01 80 06 01 80 00",
			fault.ErrCorrupt},
		"kind 7":            {strings.Replace(replaceRecord, "05 04 80", "07 04 80", 1), fault.ErrCorrupt},
		"epoch cut short":   {"01 01" + strings.Repeat("00", 12) + "05 00 00 00 00 00 00", fault.ErrCorrupt},
		"epoch 0":           {"01 01" + strings.Repeat("00", 20), fault.ErrCorrupt},
		"empty, with one":   {strings.Replace(replaceRecord, "01 02", "01 06", 1), fault.ErrCorrupt},
		"empty, with a run": {"01 04" + strings.Repeat("00", 12) + "03 00 01 00 00 00 02 01 80", fault.ErrCorrupt},
		"empty run":         {"01 00" + strings.Repeat("00", 12) + "03 00 00 00 00 00", fault.ErrCorrupt},
		"count too low":     {"01 00 00 10 00 00 00 00 00 00 00 00 00 00 03 00 01 00 00 00 02 01 80", fault.ErrCorrupt},
		"reinsert": {"01 00 00 10 00 00 00 00 00 00 01 00 00 00 03 00 01 00 00 00 03 01 80 00",
			fault.ErrCorrupt},
		"key of 4 GiB": {"01 00 00 10 00 00 00 00 00 00 01 00 00 00 03 00 01 00 00 00 02 ff ff ff ff 0f 80",
			fault.ErrCorrupt},
		"4 billion deletes": {"01 00 00 10 00 00 00 00 00 00 ff ff ff ff 03 00 ff ff ff ff 02 01 80", fault.ErrCorrupt},
	} {
		must.Fail(t, try(must.Hex(t, c.payload)), c.want, name)
	}
}

func TestDecodeStopsAtTheCallersError(t *testing.T) {
	stop := errors.New("stop")
	calls := 0
	must.Fail(t, must.Err(Decode(must.Hex(t, workedRecord), func(Op) error { calls++; return stop })), stop)
	must.Equal(t, calls, 1, "calls")
}

func TestDumpNamesEveryField(t *testing.T) {
	var out bytes.Buffer
	must.Do(t, Dump(&out, must.Hex(t, workedRecord)))
	want := `write batch
  0       01                       version
  1       00                       flags
  2       00 10 00 00 00 00 00 00  timestamp 4096
  10      02 00 00 00              operations
  table 3, schema version 0
    14      03 00 02 00 00 00        2 operations
    20      01 04 80 00 00 07 07 01  key 80000007: update 11=05000000
    28      0b 05 05 00 00 00
    34      02 04 80 00 00 08        delete key 80000008
`
	must.Equal(t, out.String(), want)
	out.Reset()
	must.Do(t, Dump(&out, must.Hex(t, replaceRecord)))
	must.Contain(t, out.String(), "replace key 80000007, image of 8 bytes\n", "a line")
	out.Reset()
	must.Do(t, Dump(&out, must.Hex(t, recordWithEpoch)))
	if last := "  14      05 00 00 00 00 00 00 00  metadata epoch 5\n"; !strings.HasSuffix(out.String(), last) {
		t.Errorf("got\n%s\nwant at the end\n%s", out.String(), last)
	}
}

func TestDumpOfEmptyBatch(t *testing.T) {
	var out bytes.Buffer
	must.Do(t, Dump(&out, must.Hex(t, emptyRecord)))
	must.Contain(t, out.String(), "04                       flags: empty\n")
}

const recordWithEpoch = "01 01 00 10 00 00 00 00 00 00 00 00 00 00 05 00 00 00 00 00 00 00"

func FuzzDecode(f *testing.F) {
	f.Add(must.Hex(f, replaceRecord))
	f.Add(must.Hex(f, workedRecord))
	f.Add(must.Hex(f, recordWithEpoch))
	f.Add(must.Hex(f, rangeRecord))
	f.Add(must.Hex(f, emptyRecord))
	fuzztest.Run(f, func(t *testing.T, payload []byte) {
		var ops []Op
		ts, err := Decode(payload, func(op Op) error { ops = append(ops, op); return nil })
		_ = Dump(&bytes.Buffer{}, payload)
		if err != nil {
			return
		}
		var w Writer
		w.Begin(ts)
		for _, op := range ops {
			w.Add(op)
		}
		head := must.Get(DecodeHead(payload))(t)
		if head.Empty {
			w.SetEmpty()
		}
		if head.Epoch > 0 {
			w.Require(head.Epoch)
		}
		again, _ := decode(t, w.Bytes())
		must.Equal(t, again, ops, head, ops)
		must.Equal(t, must.Get(DecodeHead(w.Bytes()))(t), head, ops, "operations, written again")
	})
}

package kudurow

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/internal/kuduschema"
	"github.com/oribi-db/oribi/internal/kuduwal"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

func exampleAnswer(t testing.TB) (*kudurpcpb.ColumnarRowBlockPB, [][]byte) {
	one := func(data int32) *kudurpcpb.ColumnarRowBlockPB_Column {
		return &kudurpcpb.ColumnarRowBlockPB_Column{DataSidecar: proto.Int32(data)}
	}
	m := &kudurpcpb.ColumnarRowBlockPB{NumRows: proto.Int64(3),
		Columns: []*kudurpcpb.ColumnarRowBlockPB_Column{one(0), one(1), one(3)}}
	m.Columns[1].NonNullBitmapSidecar = proto.Int32(2)
	m.Columns[2].VarlenDataSidecar, m.Columns[2].NonNullBitmapSidecar = proto.Int32(4), proto.Int32(5)
	return m, [][]byte{must.Hex(t, "010000000200000003000000"),
		must.Hex(t, "0500000000000000 0000000000000000 0700000000000000"), must.Hex(t, "05"),
		must.Hex(t, "00000000 01000000 01000000 01000000"), must.Hex(t, "61"), must.Hex(t, "05")}
}

// The example of the wire protocol.
func TestAnswerIsTheDocumentedExample(t *testing.T) {
	s := exampleSchema(t)
	m, sidecars := exampleAnswer(t)
	b := must.Get(new(Decoder).Decode(s.Columns, m, sidecars))(t)
	must.Equal(t, rowsOf(b), [][][]byte{{{1, 0, 0, 0}, {5, 0, 0, 0, 0, 0, 0, 0}, []byte("a")},
		{{2, 0, 0, 0}, nil, nil}, {{3, 0, 0, 0}, {7, 0, 0, 0, 0, 0, 0, 0}, {}}})
	m.NumRows = proto.Int64(0)
	b = must.Get(new(Decoder).Decode(s.Columns, m, make([][]byte, 6)))(t)
	must.Equal(t, b.Len, 0)
	b = must.Get(new(Decoder).Decode(nil, &kudurpcpb.ColumnarRowBlockPB{NumRows: proto.Int64(1 << 60)}, nil))(t)
	must.Equal(t, b.Len, 0)
}

// Rows of random schemas come back, also at addresses where vectors cannot be, and the vectors are
// valid.
func TestRandomAnswers(t *testing.T) {
	r := seedtest.Rand(t)
	shared := 0
	var d Decoder // of answers of other columns before
	for range seedtest.Rounds(500, 100) {
		s := randomSchema(t, r)
		var rows [][][]byte
		for range r.IntN(200) {
			rows = append(rows, randomRow(r, s.Columns))
		}
		m, sidecars := columnar(s.Columns, rows)
		move(r, sidecars)
		b := must.Get(d.Decode(s.Columns, m, sidecars))(t)
		must.Equal(t, rowsOf(b), rows)
		for i, v := range b.Columns {
			must.Do(t, v.Validate())
			for _, side := range sidecars {
				if len(v.Data) > 0 && len(side) > 0 && &v.Data[0] == &side[0] {
					shared++
				}
			}
			must.Equal(t, v.Type, s.Columns[i].Type)
		}
	}
	if shared == 0 {
		t.Error("no vector shares the bytes of the answer")
	}
}

// move puts sidecars to other addresses, aligned and not.
func move(r *rand.Rand, sidecars [][]byte) {
	for i, b := range sidecars {
		words := make([]uint64, len(b)/8+3)
		memory := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)
		at := r.IntN(2) * r.IntN(8)
		copy(memory[at:], b)
		sidecars[i] = memory[at : at+len(b)]
	}
}

func TestMalformedAnswers(t *testing.T) {
	s := exampleSchema(t)
	for name, change := range map[string]func(m *kudurpcpb.ColumnarRowBlockPB, sidecars [][]byte){
		"a column is missing": func(m *kudurpcpb.ColumnarRowBlockPB, _ [][]byte) { m.Columns = m.Columns[1:] },
		"more rows":           func(m *kudurpcpb.ColumnarRowBlockPB, _ [][]byte) { m.NumRows = proto.Int64(4) },
		"fewer rows":          func(m *kudurpcpb.ColumnarRowBlockPB, _ [][]byte) { m.NumRows = proto.Int64(2) },
		"no number of rows":   func(m *kudurpcpb.ColumnarRowBlockPB, _ [][]byte) { m.NumRows = nil },
		"many rows":           func(m *kudurpcpb.ColumnarRowBlockPB, _ [][]byte) { m.NumRows = proto.Int64(1 << 62) },
		"negative rows":       func(m *kudurpcpb.ColumnarRowBlockPB, _ [][]byte) { m.NumRows = proto.Int64(-1) },
		"no data":             func(m *kudurpcpb.ColumnarRowBlockPB, _ [][]byte) { m.Columns[0].DataSidecar = nil },
		"negative sidecar":    func(m *kudurpcpb.ColumnarRowBlockPB, _ [][]byte) { *m.Columns[0].DataSidecar = -1 },
		"unknown sidecar":     func(m *kudurpcpb.ColumnarRowBlockPB, _ [][]byte) { *m.Columns[0].DataSidecar = 6 },
		"shared sidecar": func(m *kudurpcpb.ColumnarRowBlockPB, s [][]byte) {
			*m.Columns[2].NonNullBitmapSidecar = 2
			s[5] = nil
		},
		"no byte strings":   func(m *kudurpcpb.ColumnarRowBlockPB, _ [][]byte) { m.Columns[2].VarlenDataSidecar = nil },
		"no NULLs":          func(m *kudurpcpb.ColumnarRowBlockPB, _ [][]byte) { m.Columns[1].NonNullBitmapSidecar = nil },
		"cut off cell":      func(_ *kudurpcpb.ColumnarRowBlockPB, s [][]byte) { s[0] = s[0][:11] },
		"few NULLs":         func(_ *kudurpcpb.ColumnarRowBlockPB, s [][]byte) { s[2] = nil },
		"many NULLs":        func(_ *kudurpcpb.ColumnarRowBlockPB, s [][]byte) { s[2] = []byte{5, 0} },
		"NULL with bytes":   func(_ *kudurpcpb.ColumnarRowBlockPB, s [][]byte) { s[5][0] = 4 },
		"offset not 0":      func(_ *kudurpcpb.ColumnarRowBlockPB, s [][]byte) { s[3][0] = 1 },
		"offset descends":   func(_ *kudurpcpb.ColumnarRowBlockPB, s [][]byte) { s[3][8] = 0 },
		"offset beyond":     func(_ *kudurpcpb.ColumnarRowBlockPB, s [][]byte) { s[3][15] = 0xff },
		"offsets cut off":   func(_ *kudurpcpb.ColumnarRowBlockPB, s [][]byte) { s[3] = s[3][:13] },
		"offsets are empty": func(_ *kudurpcpb.ColumnarRowBlockPB, s [][]byte) { s[3] = nil },
	} {
		m, sidecars := exampleAnswer(t)
		change(m, sidecars)
		must.Fail(t, must.Err(new(Decoder).Decode(s.Columns, m, sidecars)), fault.ErrCorrupt, name)
	}
	b := []schema.Column{{Name: "b", Type: schema.Bool}}
	m, sidecars := columnar(b, [][][]byte{{{1}}, {{7}}})
	must.Fail(t, must.Err(new(Decoder).Decode(b, m, sidecars)), fault.ErrCorrupt)
	must.Fail(t, must.Err(CountRows(&kudurpcpb.ColumnarRowBlockPB{NumRows: proto.Int64(-1)})), fault.ErrCorrupt)
}

// Any answer is refused or is a batch of valid vectors, of not more memory than its bytes allow.
func FuzzDecode(f *testing.F) {
	s := exampleSchema(f)
	m, sidecars := exampleAnswer(f)
	message := must.Get(proto.Marshal(m))(f)
	var body []byte
	for _, b := range sidecars {
		body = append(append(body, byte(len(b))), b...)
	}
	f.Add(message, body)
	f.Add([]byte{0x10, 0}, []byte{})
	fuzztest.Run(f, func(t *testing.T, message, body []byte) {
		var m kudurpcpb.ColumnarRowBlockPB
		if proto.Unmarshal(message, &m) != nil {
			return
		}
		var sidecars [][]byte
		for len(body) > 0 {
			n := min(int(body[0]), len(body)-1)
			sidecars = append(sidecars, slices.Clone(body[1:1+n]))
			body = body[1+n:]
		}
		var d Decoder
		for _, columns := range [][]schema.Column{s.Columns, s.Columns[:1], {{Name: "b", Type: schema.Bool}}} {
			b, err := d.Decode(columns, &m, sidecars)
			if err != nil {
				must.Fail(t, err, fault.ErrCorrupt)
				continue
			}
			checkAnswer(t, b)
		}
	})
}

// checkAnswer checks that a decoded batch is well-formed, and has the rows of the answer that is made of
// it.
func checkAnswer(t *testing.T, b *batch.RecordBatch) {
	t.Helper()
	for _, v := range b.Columns {
		must.Do(t, v.Validate())
		must.Equal(t, v.Len, b.Len)
	}
	rows := rowsOf(b)
	m, sidecars := columnar(b.Schema, rows)
	must.Equal(t, rowsOf(must.Get(new(Decoder).Decode(b.Schema, m, sidecars))(t)), rows)
}

// Any schema is refused, or is one that can be sent and partitioned by its key.
func FuzzSchema(f *testing.F) {
	f.Add(must.Get(proto.Marshal(kuduschema.Message(exampleSchema(f))))(f))
	fuzztest.Run(f, func(t *testing.T, message []byte) {
		m, err := kuduwal.DecodeSchema(message)
		if err != nil {
			return
		}
		s, err := kuduschema.FromMessage(m)
		if err != nil || Check(s) != nil {
			return
		}
		must.Equal(t, len(WireSchema(s).Columns), len(s.Columns))
		must.Equal(t, len(Projection(s.Columns)), len(s.Columns))
		must.Get(NewPartitioner(nil, s))(t)
		must.Get(NewEncoder(s).Least(nil))(t)
		again := must.Get(kuduschema.FromMessage(kuduschema.Message(s)))(t)
		must.Equal(t, again.Names(), s.Names())
	})
}

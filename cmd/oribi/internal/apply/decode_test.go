package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// decoder returns a decoder that knows only the schema of the table "tree".
func decoder(t testing.TB) *Decoder {
	t.Helper()
	s := must.Get(schema.New([]schema.Column{{ID: 0, Name: "path", Type: schema.String},
		{ID: 1, Name: "mode", Type: schema.String, Nullable: true},
		{ID: 2, Name: "blob", Type: schema.String}, {ID: 3, Name: "size", Type: schema.Int64},
		{ID: 4, Name: "seq", Type: schema.Int32}}, 1))(t)
	tree := &Target{Schema: s}
	return &Decoder{Tables: func(name string) (*Target, error) {
		if name != "tree" {
			return nil, fmt.Errorf("table %q: %w", name, oribi.ErrNoTable)
		}
		return tree, nil
	}}
}

// text formats an operation for comparison; it omits columns that are not set.
func text(op *Operation) string {
	b := []byte(op.Kind.String())
	for i, c := range op.Target.Schema.Columns {
		if op.Set[i] {
			b = append(b, ' ')
			b = append(b, c.Name...)
			b = celltext.AppendJSON(append(b, '='), &c, op.Cells[i])
		}
	}
	return string(b)
}

func TestOperationsReportSetColumns(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`{"ops":[]}`, ``},
		{`{"ops":[{"op":"upsert","table":"tree","row":{"path":"a","size":1}}]}`, `upsert path="a" size=1`},
		{`{"ops":[{"row":{"seq":2,"mode":null,"path":""},"table":"tree","op":"update_ignore"}]}`,
			`update_ignore path="" mode=null seq=2`},
		{` {"ops" : [ {"op":"delete","table":"tree","key":{"path":"\u00e9\n"}} , {"op":"insert","table":"tree","row":{"path":"{\"}"}} ] } ` + "\r",
			`delete path="é\n"; insert path="{\"}"`},
		{`{"op\u0073":[{"\u006fp":"ins\u0065rt","table":"tr\u0065e","row":{"p\u0061th":"a"}}]}`, `insert path="a"`},
	} {
		var got []string
		err := decoder(t).Decode([]byte(c.line), func(op *Operation) error {
			got = append(got, text(op))
			return nil
		})
		if s := strings.Join(got, "; "); err != nil || s != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.line, s, err, c.want)
		}
	}
}

// An operation does not contain what an earlier one set.
func TestOperationsDoNotLeakIntoOneAnother(t *testing.T) {
	d := decoder(t)
	line := `{"ops":[{"op":"insert","table":"tree","row":{"path":"a","mode":"m","blob":"b","size":1,"seq":2}},{"op":"delete","table":"tree","key":{"path":"b"}}]}`
	for range 2 {
		var got []string
		must.Do(t, d.Decode([]byte(line), func(op *Operation) error {
			got = append(got, text(op))
			return nil
		}))
		must.Equal(t, got[1], `delete path="b"`)
	}
}

func TestErrorsOfUseNameTheOperation(t *testing.T) {
	refused := errors.New("refused")
	n := 0
	err := decoder(t).Decode([]byte(`{"ops":[`+strings.Repeat(`{"op":"delete","table":"tree","key":{"path":"x"}},`, 3)+
		`{}]}`), func(*Operation) error {
		if n++; n == 3 {
			return refused
		}
		return nil
	})
	must.Fail(t, err, refused)
	must.Equal(t, fmt.Sprint(err), "op 3: refused")
}

func TestLinesAreNumberedAndNeedNoEnd(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	in := readLines(strings.NewReader("a\n\n" + long + "\r\nlast"))
	defer in.close()
	for number, want := range []string{"a", "", long + "\r", "last"} {
		n, err := in.next(context.Background())
		if err != nil || n.number != number+1 || string(n.text) != want {
			t.Fatalf("line %d: got number %d, %.20q, %v", number+1, n.number, n.text, err)
		}
		in.done(n)
	}
	if _, err := in.next(context.Background()); err != io.EOF {
		t.Errorf("after the last line: %v", err)
	}
}

func TestWaitingForALineEndsWithTheContext(t *testing.T) {
	silent, writer := io.Pipe()
	defer writer.Close()
	in := readLines(silent)
	defer in.close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	must.Fail(t, must.Err(in.next(ctx)), context.Canceled)
}

func FuzzDecodeNeverPanics(f *testing.F) {
	f.Add([]byte(`{"ops":[{"op":"upsert","table":"tree","row":{"path":"a","size":1}}]}`))
	fuzztest.Run(f, func(t *testing.T, line []byte) {
		_ = decoder(t).Decode(line, func(op *Operation) error { text(op); return nil })
	})
}

// historyLines returns the history of a source tree as lines to apply.
func historyLines(t testing.TB) (lines [][]byte, ops int) {
	var out []byte
	for _, text := range corpustest.Lines(t, corpustest.Dir(t)+"/data/kudu-tree-history.jsonl") {
		_, list, found := strings.Cut(text, `"ops":[`)
		must.Equal(t, found, true, text)
		out = append(out[:0], `{"ops":[`...)
		for i, op := range strings.Split(strings.TrimSuffix(list, "]]}"), "],") {
			f := strings.Split(strings.Trim(op, "[]"), ",")
			if i > 0 {
				out = append(out, ',')
			}
			if f[0] == `"D"` {
				out = append(append(append(out, `{"op":"delete","table":"tree","key":{"path":`...), f[1]...), "}}"...)
			} else {
				out = fmt.Appendf(out,
					`{"op":"upsert","table":"tree","row":{"path":%s,"mode":%s,"blob":%s,"size":%s,"seq":%d}}`, f[1],
					f[2], f[3], f[4], len(lines)+1)
			}
			ops++
		}
		lines = append(lines, append(bytes.Clone(out), "]}"...))
	}
	return lines, ops
}

func TestRealHistoryDecodes(t *testing.T) {
	lines, ops := historyLines(t)
	d, n := decoder(t), 0
	for i, line := range lines {
		err := d.Decode(line, func(op *Operation) error {
			n++
			if seq := text(op); op.Kind == oribi.OpUpsert && !strings.HasSuffix(seq, " seq="+strconv.Itoa(i+1)) {
				return errors.New(seq)
			}
			return nil
		})
		must.Do(t, err, i+1)
	}
	if n != ops || ops < 60000 {
		t.Errorf("%d operations of %d", n, ops)
	}
}

func BenchmarkDecode(b *testing.B) {
	lines, ops := historyLines(b)
	d, n, bytes := decoder(b), 0, 0
	for _, line := range lines {
		bytes += len(line)
	}
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	for b.Loop() {
		for _, line := range lines {
			must.Do(b, d.Decode(line, func(*Operation) error { n++; return nil }))
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "ops/s")
	if n%ops != 0 {
		b.Fatal("operations are missing")
	}
}

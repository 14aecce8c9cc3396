package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

var columns = []schema.Column{
	{Name: "id", Type: schema.Int32},
	{Name: `na,me`, Type: schema.String, Nullable: true},
	{Name: "on", Type: schema.Bool},
}

// rows returns a batch of which every second row is selected.
func rows(names ...string) *batch.RecordBatch {
	b := batch.New(columns, 2*len(names))
	for i := range b.Len {
		name := []byte(names[i/2])
		if names[i/2] == "NULL" {
			name = nil
		}
		b.Columns[0].SetCell(i, []byte{byte(i / 2), 0, 0, 0})
		b.Columns[1].SetCell(i, name)
		b.Columns[2].SetCell(i, []byte{byte(i / 2 % 2)})
		if i%2 == 1 {
			b.Selection.Clear(i)
		}
	}
	return b
}

func TestFormats(t *testing.T) {
	in := rows("plain", "NULL", "", "a,b", "say \"x\"\r\n", "é\x1b[0m")
	for _, c := range []struct {
		format string
		want   []string
	}{
		{"jsonl", []string{
			`{"id":0,"na,me":"plain","on":false}`, `{"id":1,"na,me":null,"on":true}`, `{"id":2,"na,me":"","on":false}`,
			`{"id":3,"na,me":"a,b","on":true}`, `{"id":4,"na,me":"say \"x\"\r\n","on":false}`,
			`{"id":5,"na,me":"é\u001b[0m","on":true}`, ""}},
		{"csv", []string{
			`id,"na,me",on`, `0,plain,false`, `1,,true`, `2,"",false`, `3,"a,b",true`, "4,\"say \"\"x\"\"\r",
			"\",false", "5,é\x1b[0m,true", ""}},
		{"table", []string{
			"id  na,me            on", " 0  plain            false",
			" 1  NULL             true", ` 2  ""               false`,
			" 3  a,b              true", ` 4  "say \"x\"\r\n"  false`, ` 5  "é\u001b[0m"     true`, "(6 rows)", ""}},
	} {
		f := must.Get(ParseFormat(c.format))(t)
		var out bytes.Buffer
		w := New(&out, f, columns)
		must.Do(t, errors.Join(w.Write(in), w.Close()))
		must.Equal(t, out.String(), strings.Join(c.want, "\n"), c.format)
	}
	must.Refuse(t, must.Err(ParseFormat("xml")), "xml was accepted as a format")
}

func TestEmptyTableOutput(t *testing.T) {
	for _, c := range []struct {
		format Format
		want   string
	}{{JSONL, ""}, {JSON, "[]\n"}, {CSV, "id,\"na,me\",on\n"}, {Table, "id  na,me  on\n(no rows)\n"}} {
		var out bytes.Buffer
		must.Do(t, New(&out, c.format, columns).Close(), c.format)
		must.Equal(t, out.String(), c.want, c.format)
	}
}

func TestArrayIsOneJSONValue(t *testing.T) {
	var out bytes.Buffer
	w := New(&out, JSON, columns)
	must.Do(t, errors.Join(w.Write(rows("a", "b")), w.Write(rows("c")), w.Close()))
	var got []map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got) != 3 || got[2]["na,me"] != "c" {
		t.Errorf("%s: %v", out.String(), err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestWriteErrorsAreReturned(t *testing.T) {
	full := errors.New("full")
	w := New(failing{full}, JSONL, columns)
	var err error
	for i := 0; i < 1e6 && err == nil; i++ {
		err = w.Write(rows("some name"))
	}
	if !errors.Is(err, full) || !errors.Is(w.Close(), full) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkWrite(b *testing.B) {
	in := batch.New([]schema.Column{{Name: "path", Type: schema.String}, {Name: "size", Type: schema.Int64}},
		batch.WindowRows)
	for i := range in.Len {
		in.Columns[0].SetCell(i, []byte("src/kudu/tablet/tablet.cc"))
		in.Columns[1].SetCell(i, []byte{byte(i), byte(i >> 8), 1, 0, 0, 0, 0, 0})
	}
	for _, f := range []string{"jsonl", "csv"} {
		b.Run("format="+f, func(b *testing.B) {
			format := must.Get(ParseFormat(f))(b)
			var n counting
			w := New(&n, format, in.Schema)
			for b.Loop() {
				must.Do(b, w.Write(in))
			}
			b.ReportMetric(float64(b.N)*batch.WindowRows/b.Elapsed().Seconds(), "rows/s")
			if w.Close() != nil || n == 0 {
				b.Fatal("nothing written")
			}
		})
	}
}

type counting int64

func (c *counting) Write(p []byte) (int, error) { *c += counting(len(p)); return len(p), nil }

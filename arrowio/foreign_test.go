package arrowio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	pq "github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/oribi-db/oribi/internal/must"
)

// foreignFile returns a file of testdata/foreign, which foreign.py has made with pyarrow.
func foreignFile(t *testing.T, name string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(filepath.Join("testdata", "foreign", name)))(t)
}

// foreignRows returns rows as lines of JSON, as foreign.py prints them.
func foreignRows(t *testing.T, rows *Rows) []string {
	t.Helper()
	lines := []string{}
	for b, err := range rows.Batches() {
		must.Do(t, err)
		for i := range b.Rows() {
			row := make([]any, len(b.Columns))
			for c, v := range b.Columns {
				row[c] = pythonText(&b.Schema[c], v.Cell(i))
			}
			line := must.Get(json.Marshal(row))(t)
			lines = append(lines, string(line))
		}
	}
	return lines
}

// Files of pyarrow are read as pyarrow reads them: both versions of pages, all encodings, with and
// without dictionaries, statistics, page index and row groups, the old timestamps, each way to
// store decimals.
func TestForeignFiles(t *testing.T) {
	columns := map[string][]string{"nested": {"k", "list", "words"}}
	in := bufio.NewScanner(bytes.NewReader(foreignFile(t, "rows.jsonl")))
	in.Buffer(nil, 1<<20)
	files := 0
	for in.Scan() {
		var want []json.RawMessage
		must.Do(t, json.Unmarshal(in.Bytes(), &want))
		var name string
		must.Do(t, json.Unmarshal(want[0], &name))
		files++
		t.Run(name, func(t *testing.T) {
			mem := checked(t)
			data := foreignFile(t, name+".parquet")
			f, rows := opened(t, "parquet", data, mem, ReadOptions{Columns: columns[name]})
			defer f.Close()
			var text []string
			for _, row := range want[1:] {
				text = append(text, string(row))
			}
			same(t, name, normalized(t, strings.Join(foreignRows(t, rows), "\n")),
				normalized(t, strings.Join(text, "\n")))
			rows.Release()

			// Loaded into a table, the rows are the same too.
			d := must.Get(f.Definition().project(columns[name]))(t)
			s := must.Get(d.Table("k"))(t)
			table := must.Get(openStore(t).CreateTable("t", s))(t)
			rows = must.Get(f.Read(context.Background(), ReadOptions{Columns: columns[name]}))(t)
			if _, n, err := Ingest(context.Background(), table, rows); err != nil || n != int64(len(text)) {
				t.Fatalf("%d rows were ingested, want %d: %v", n, len(text), err)
			}
			rows.Release()
			again, rows := opened(t, "parquet",
				exported(t, "parquet", table.Scan(context.Background()), mem), mem, ReadOptions{})
			same(t, name+", loaded", normalized(t, strings.Join(foreignRows(t, rows), "\n")),
				normalized(t, strings.Join(text, "\n")))
			rows.Release()
			again.Close()
		})
	}
	if err := in.Err(); err != nil || files < 10 {
		t.Errorf("%d files: %v", files, err)
	}
}

// Columns that no column of a table can represent are refused by name, and only if they are read.
func TestForeignGroupsAreRefused(t *testing.T) {
	data := foreignFile(t, "nested.parquet")
	f := must.Get(OpenParquet(bytes.NewReader(data), int64(len(data)), OpenOptions{}))(t)
	defer f.Close()
	var refused []string
	for _, e := range f.Definition().Refused {
		refused = append(refused, e.Column)
	}
	must.Equal(t, fmt.Sprint(refused), "[struct lists map]")
	var bad *ColumnError
	if _, err := f.Read(context.Background(), ReadOptions{}); !errors.As(err, &bad) || bad.Column != "struct" ||
		!errors.Is(err, ErrUnsupported) {
		t.Errorf("reading all columns: %v", err)
	}
}

// Encrypted files are refused as such, whether the footer is encrypted or not.
func TestEncryptedFilesAreRefused(t *testing.T) {
	for _, name := range []string{"encrypted-footer", "encrypted-columns"} {
		data := foreignFile(t, name+".parquet")
		_, err := OpenParquet(bytes.NewReader(data), int64(len(data)), OpenOptions{})
		must.Fail(t, err, ErrUnsupported, name)
		must.Contain(t, fmt.Sprint(err), "the file is encrypted", name)
	}
}

// Decimals may be stored as byte strings, of any length.
func TestDecimalsInByteArrays(t *testing.T) {
	node := func(name string, precision, scale int32) pq.Node {
		n := must.Get(pq.NewPrimitiveNodeLogical(name, parquet.Repetitions.Optional,
			pq.NewDecimalLogicalType(precision, scale), parquet.Types.ByteArray, 0, -1))(t)
		return n
	}
	root := must.Get(pq.NewGroupNode("schema", parquet.Repetitions.Required,
		pq.FieldList{node("a", 9, 2), node("b", 38, 0)}, -1))(t)
	var out bytes.Buffer
	w := file.NewParquetWriter(&out, root)
	group := w.AppendRowGroup()
	for _, values := range [][]parquet.ByteArray{
		{{}, {0x7f}, {0xff}, {0xff, 0x7f}, {0, 0, 0, 0, 0, 0, 1, 0}},
		{{0x80}, {0x01}, bytes.Repeat([]byte{0xff}, 20), {0, 0x80}, {1, 0, 0, 0, 0, 0, 0, 0, 0}},
	} {
		column := must.Get(group.NextColumn())(t)
		must.Get(column.(*file.ByteArrayColumnChunkWriter).WriteBatch(values,
			[]int16{1, 1, 1, 0, 1, 1}, nil))(t)
		must.Do(t, column.Close())
	}
	must.Do(t, w.Close())
	f, rows := opened(t, "parquet", out.Bytes(), checked(t), ReadOptions{})
	defer f.Close()
	defer rows.Release()
	want := []string{`["0.00","-128"]`, `["1.27","1"]`, `["-0.01","-1"]`, `[null,null]`, `["-1.29","128"]`,
		`["2.56","18446744073709551616"]`}
	same(t, "decimals", foreignRows(t, rows), want)
	must.Equal(t, f.Definition().Columns[1].TypeName(), "decimal(38,0)")
}

package arrowio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/pythontest"
	"github.com/oribi-db/oribi/schema"
)

// publicRows is the number of rows of a public file that are compared; all are read.
const publicRows = 100_000

// Public files of other programs are read as pyarrow reads them, cell by cell, or refused with one
// of the errors of this package. Predicates select the rows for which they are true. $ORIBI_PUBLIC
// is a folder with such files. The log counts files, cells, and errors.
func TestPublicFiles(t *testing.T) {
	folder := os.Getenv("ORIBI_PUBLIC")
	if folder == "" {
		t.Skip("no files: set ORIBI_PUBLIC to a folder with Parquet and Arrow files")
	}
	cmd := exec.Command(pythontest.Find(t, "pyarrow"), filepath.Join("testdata", "public.py"), strconv.Itoa(publicRows))
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	p := publicFiles{questions: json.NewEncoder(in), answers: bufio.NewReaderSize(out, 1<<20), counts: map[string]int{}}
	err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() ||
			!slices.Contains([]string{".parquet", ".parq", ".arrow", ".arrows", ".arrow_file", ".stream", ".feather",
				".ipc"}, strings.ToLower(filepath.Ext(name))) {
			return err
		}
		return p.compare(t, name)
	})
	in.Close()
	must.Do(t, errors.Join(err, cmd.Wait()))
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range p.counts {
			if !yield(name) {
				return
			}
		}
	}) {
		t.Logf("%8d %s", p.counts[name], name)
	}
	if p.counts["files"] == 0 {
		t.Errorf("%s has no Parquet or Arrow files", folder)
	}
}

// julianDay0 is an INT96 timestamp of zeros. duckdb reads it like this; pyarrow makes it 1970.
const julianDay0 microseconds = "-210866803200000000"

// microseconds is a timestamp, in decimal.
type microseconds string

// publicFiles compares files with the answers of pyarrow.
type publicFiles struct {
	questions *json.Encoder
	answers   *bufio.Reader
	counts    map[string]int
}

// publicColumn is a column as this package reads it.
type publicColumn struct {
	rows   int
	values []any
	sample [][]byte // cells of some rows, unless it is an array
	err    error
}

// compare compares a file with the answer of pyarrow.
func (p *publicFiles) compare(t *testing.T, name string) error {
	p.counts["files"]++
	watch := time.AfterFunc(5*time.Minute, func() { panic("reading does not end: " + name) })
	ours, openErr := readPublic(name)
	watch.Stop()
	var asked []string
	for column, c := range ours {
		if c.err == nil || errors.Is(c.err, ErrCorrupt) {
			asked = append(asked, column)
		}
	}
	if openErr == nil && len(asked) == 0 {
		asked = []string{} // not nil, which asks for all columns
	}
	if err := p.questions.Encode(map[string]any{"name": name, "asked": asked}); err != nil {
		return err
	}
	line, err := p.answers.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("%s: no answer of pyarrow: %w", name, err)
	}
	var theirs struct {
		Error   string
		Rows    int
		Columns map[string][]any
	}
	if err := json.Unmarshal(line, &theirs); err != nil {
		return err
	}
	if openErr != nil {
		p.refused(t, name, openErr, theirs.Error == "")
		return nil
	}
	for column, c := range ours {
		want, both := theirs.Columns[column]
		switch {
		case c.err != nil:
			p.refused(t, fmt.Sprintf("%s: %q", name, column), c.err, both)
			continue
		case !both:
			p.counts["columns that pyarrow does not read"]++
			continue
		case c.rows != theirs.Rows || len(c.values) != len(want):
			t.Errorf("%s: %q: %d rows, want %d", name, column, c.rows, theirs.Rows)
			continue
		}
		p.counts["columns"]++
		p.counts["cells"] += len(want)
		for i := range want {
			if !samePublic(c.values[i], want[i]) {
				t.Errorf("%s: row %d: %q: %v, want %v", name, i+1, column, c.values[i], want[i])
				break
			}
		}
	}
	p.filtered(t, name, ours)
	return nil
}

// filtered compares the number of rows that predicates select with the number that a test of each
// row selects. The test uses no statistics.
func (p *publicFiles) filtered(t *testing.T, name string, columns map[string]*publicColumn) {
	for column, c := range columns {
		if c.err != nil || len(c.sample) == 0 {
			continue
		}
		where := []oribi.Predicate{oribi.IsNull(column), oribi.NotNull(column)}
		for _, cell := range c.sample {
			where = append(where, oribi.Eq(column, oribi.Cell(cell)), oribi.Lt(column, oribi.Cell(cell)),
				oribi.Ge(column, oribi.Cell(cell)), oribi.Ne(column, oribi.Cell(cell)))
		}
		want, err := countTested(name, column, where)
		for i, test := range where {
			if err != nil {
				break
			}
			var got int
			if got, err = countSelected(name,
				ReadOptions{Columns: []string{column}, Where: []oribi.Predicate{test}}); err == nil && got != want[i] {
				t.Errorf("%s: %v: %d rows, want %d", name, test, got, want[i])
			}
			p.counts["predicates"]++
		}
		if err != nil && !errors.Is(err, ErrSchema) { // of a value that no table has
			t.Errorf("%s: %q: %v", name, column, err)
		}
	}
}

// countSelected returns the number of rows that are read.
func countSelected(name string, o ReadOptions) (n int, err error) {
	err = readPublicBatches(name, o, func(_ *File, b *batch.RecordBatch) error {
		n += b.Selected()
		return nil
	})
	return n, err
}

// countTested returns, for each predicate, the number of rows of a column for which it is true.
func countTested(name, column string, where []oribi.Predicate) ([]int, error) {
	counts := make([]int, len(where))
	err := readPublicBatches(name, ReadOptions{Columns: []string{column}}, func(f *File, b *batch.RecordBatch) error {
		for i, test := range where {
			d, err := f.Definition().project([]string{column})
			if err != nil {
				return err
			}
			filter, _, err := bindFilter(f.Definition(), d.Columns, []oribi.Predicate{test})
			if err != nil {
				return err
			}
			tested := *b
			tested.Selection = slices.Clone(b.Selection)
			if err := filter.apply(&tested); err != nil {
				return err
			}
			counts[i] += tested.Selected()
		}
		return nil
	})
	return counts, err
}

func readPublicBatches(name string, o ReadOptions, use func(*File, *batch.RecordBatch) error) error {
	f, err := openPublic(name)
	if err != nil {
		return err
	}
	defer f.Close()
	rows, err := f.Read(context.Background(), o)
	if err != nil {
		return err
	}
	defer rows.Release()
	for b, err := range rows.Batches() {
		if err == nil {
			err = use(f, b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// refused counts an error of a file or a column. Damage that pyarrow reads is logged.
func (p *publicFiles) refused(t *testing.T, what string, err error, readable bool) {
	for _, class := range []struct {
		name string
		err  error
	}{{"corrupt", ErrCorrupt}, {"value", ErrRow}, {"unsupported", ErrUnsupported}, {"schema", ErrSchema}} {
		if !errors.Is(err, class.err) {
			continue
		}
		p.counts["refused: "+class.name]++
		if class.err == ErrCorrupt && readable {
			p.counts["refused: corrupt, and pyarrow reads it"]++
			t.Logf("pyarrow reads %s: %v", what, err)
		}
		return
	}
	t.Errorf("%s: not one of the package's errors: %v", what, err)
}

// openPublic opens a file by its content.
func openPublic(name string) (*File, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	in := bytes.NewReader(data)
	switch {
	case bytes.HasPrefix(data, []byte("ARROW1")):
		return OpenArrow(in, int64(len(data)), OpenOptions{})
	case bytes.HasPrefix(data, []byte(parquetMagic)), strings.HasPrefix(strings.ToLower(filepath.Ext(name)), ".parq"):
		return OpenParquet(in, int64(len(data)), OpenOptions{})
	}
	return OpenStream(in, OpenOptions{})
}

// readPublic reads each column of a file that can be read.
func readPublic(name string) (map[string]*publicColumn, error) {
	f, err := openPublic(name)
	if err != nil {
		return nil, err
	}
	defer func() { f.Close() }()
	columns := map[string]*publicColumn{}
	for _, e := range f.Definition().Refused {
		columns[e.Column] = &publicColumn{err: e}
	}
	var names []string
	for _, c := range f.Definition().Columns {
		if columns[c.Name] == nil {
			names = append(names, c.Name)
		}
	}
	for len(names) > 0 {
		read, err := readColumns(f, names)
		var bad *ColumnError
		switch {
		case err == nil:
			for i, name := range names {
				columns[name] = read[i]
			}
			return columns, nil
		case !errors.As(err, &bad) || !slices.Contains(names, bad.Column):
			return nil, err
		}
		columns[bad.Column] = &publicColumn{err: err}
		names = slices.DeleteFunc(names, func(name string) bool { return name == bad.Column })
		f.Close()
		if f, err = openPublic(name); err != nil { // a stream can be read once
			return nil, err
		}
	}
	return columns, nil
}

func readColumns(f *File, names []string) ([]*publicColumn, error) {
	columns := make([]*publicColumn, len(names))
	for i := range columns {
		columns[i] = &publicColumn{}
	}
	rows, err := f.Read(context.Background(), ReadOptions{Columns: names})
	if err != nil {
		return nil, err
	}
	defer rows.Release()
	for b, err := range rows.Batches() {
		if err != nil {
			return nil, err
		}
		for i := range b.Rows() {
			for c, v := range b.Columns {
				if columns[c].rows++; columns[c].rows <= publicRows {
					columns[c].values = append(columns[c].values, publicText(&b.Schema[c], v.Cell(i)))
				}
				// Rows 1, 16, 256, …
				if cell := v.Cell(i); cell != nil && v.Type != schema.Array &&
					bits.OnesCount(uint(columns[c].rows)) == 1 && bits.TrailingZeros(uint(columns[c].rows))%4 == 0 {
					columns[c].sample = append(columns[c].sample, bytes.Clone(cell))
				}
			}
		}
	}
	return columns, nil
}

// publicText returns a cell as public.py prints it.
func publicText(c *schema.Column, cell []byte) any {
	if cell == nil {
		return nil
	}
	double := func(v float64) string {
		if v != v {
			return "nan"
		}
		return fmt.Sprintf("%016x", math.Float64bits(v))
	}
	integer := func() int64 { return int64(binary.LittleEndian.Uint64(append(bytes.Clone(cell), make([]byte, 8)...))) }
	shift := 64 - 8*len(cell)
	switch c.Type {
	case schema.Array:
		e := c.Elements()
		elements, err := schema.ArrayElements(nil, c.Element, cell)
		if err != nil {
			return err.Error()
		}
		out := []any{}
		for _, element := range elements {
			out = append(out, publicText(&e, element))
		}
		return out
	case schema.Bool:
		return cell[0] != 0
	case schema.Uint8, schema.Uint16, schema.Uint32, schema.Uint64:
		return strconv.FormatUint(uint64(integer()), 10)
	case schema.Decimal128:
		return batch.Int128{Lo: uint64(integer()), Hi: int64(binary.LittleEndian.Uint64(cell[8:]))}.String()
	case schema.Float:
		return double(float64(math.Float32frombits(uint32(integer()))))
	case schema.Double:
		return double(math.Float64frombits(uint64(integer())))
	case schema.String, schema.Varchar:
		if utf8.Valid(cell) {
			return "s" + string(cell)
		}
		return "x" + hex.EncodeToString(cell)
	case schema.Binary:
		return "x" + hex.EncodeToString(cell)
	}
	number := strconv.FormatInt(integer()<<shift>>shift, 10)
	if c.Type == schema.Timestamp {
		return microseconds(number)
	}
	return number
}

// samePublic compares two values. Text may be read as bytes.
func samePublic(got, want any) bool {
	switch a := got.(type) {
	case []any:
		b, ok := want.([]any)
		return ok && slices.EqualFunc(a, b, samePublic)
	case microseconds:
		return want == string(a) || a == julianDay0 && want == "0"
	case string:
		b, ok := want.(string)
		if ok && a != b && a != "" && b != "" {
			return a[0] == 'x' && b[0] == 's' && a[1:] == hex.EncodeToString([]byte(b[1:])) ||
				a[0] == 's' && b[0] == 'x' && b[1:] == hex.EncodeToString([]byte(a[1:]))
		}
		return ok && a == b
	}
	return got == want
}

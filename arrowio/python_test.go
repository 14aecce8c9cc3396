package arrowio

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/internal/pythontest"
	"github.com/oribi-db/oribi/schema"
)

// runPython runs a script that needs a module, and returns its output.
func runPython(t *testing.T, module, script string, args ...string) string {
	t.Helper()
	cmd := exec.Command(pythontest.Find(t, module), append([]string{"-c", script}, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	must.Do(t, err, args, stderr.String())
	return string(out)
}

// showCells is the part of the readers that makes JSON of a cell.
const showCells = `
import sys, json, decimal, datetime
def show(v):
    if isinstance(v, float): return repr(v)
    if isinstance(v, bytes): return v.hex()
    if isinstance(v, decimal.Decimal): return format(v, 'f')
    if isinstance(v, datetime.datetime): return str(int((v - datetime.datetime(1970,1,1,tzinfo=datetime.timezone.utc)) / datetime.timedelta(microseconds=1)))
    if isinstance(v, datetime.date): return v.isoformat()
    if isinstance(v, list): return [show(x) for x in v]
    return v
`

// readers are programs that print the rows of a Parquet file, sorted by key, as JSON arrays.
var readers = map[string]string{
	"pyarrow": showCells + `
import pyarrow.parquet as pq, pyarrow.ipc as ipc
name = sys.argv[1]
t = pq.read_table(name) if name.endswith('.parquet') else ipc.open_file(name).read_all() if name.endswith('.arrow') else ipc.open_stream(name).read_all()
t.validate(full=True)
for row in t.to_pylist(): print(json.dumps([show(v) for v in row.values()]))
`,
	"duckdb": showCells + `
import duckdb
c = duckdb.connect()
c.execute("set timezone='UTC'")
names = [d[0] for d in c.execute(f"select * from '{sys.argv[1]}' limit 0").description]
pick = ', '.join(f'cast(epoch_us("{n}") as varchar)' if n == 'when' else f'"{n}"' for n in names)
for row in c.execute(f"select {pick} from '{sys.argv[1]}' order by k, name").fetchall(): print(json.dumps([show(v) for v in row]))
`,
	"polars": showCells + `
import polars
name = sys.argv[1]
t = polars.read_parquet(name) if name.endswith('.parquet') else polars.read_ipc(name) if name.endswith('.arrow') else polars.read_ipc_stream(name)
for row in t.iter_rows(): print(json.dumps([show(v) for v in row]))
`,
}

// pythonText returns a cell as the programs print it.
func pythonText(c *schema.Column, cell []byte) any {
	switch {
	case cell == nil:
		return nil
	case c.Type == schema.Array:
		e := c.Elements()
		elements, err := schema.ArrayElements(nil, c.Element, cell)
		if err != nil {
			panic(err)
		}
		out := make([]any, len(elements))
		for i := range elements {
			out[i] = pythonText(&e, elements[i])
		}
		return out
	case c.Type == schema.Binary:
		return fmt.Sprintf("%x", cell)
	}
	var v any
	d := json.NewDecoder(strings.NewReader(string(celltext.AppendJSON(nil, c, cell))))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		panic(err)
	}
	if n, ok := v.(json.Number); ok && c.Type == schema.Timestamp {
		return n.String()
	}
	return v
}

// judgedTable returns a table with a column of each type that other programs show alike. Floats are
// left out, since each prints them in its own way, and times that Python's types cannot represent.
func judgedTable(t *testing.T) *oribi.Table {
	t.Helper()
	store := openStore(t)
	var columns []schema.Column
	for _, c := range scalarColumns() {
		switch c.Stored() {
		case schema.Float, schema.Double, schema.Timestamp:
		default:
			columns = append(columns, c)
		}
	}
	columns = append(columns, column(t, "when", "timestamp"))
	s, err := schema.New(append([]schema.Column{{Name: "k", Type: schema.Int32}, {Name: "name", Type: schema.String}},
		columns...), 2)
	must.Do(t, err)
	table := must.Get(store.CreateTable("t", s))(t)
	fillRandom(t, store, table, 3000, 11)
	must.Get(table.UpdateWhere(context.Background(), oribi.Row{"when": time.UnixMicro(1_700_000_000_123_456)},
		oribi.Where(oribi.NotNull("when")), oribi.InPieces()))(t)
	return table
}

// Other programs read the same rows from our files.
func TestOtherProgramsReadOurFiles(t *testing.T) {
	table := judgedTable(t)
	s := table.Schema()
	var want []string
	for cells, err := range table.Scan(context.Background()).Cells() {
		must.Do(t, err)
		row := make([]any, len(cells))
		for i := range cells {
			row[i] = pythonText(&s.Columns[i], cells[i])
		}
		text := must.Get(json.Marshal(row))(t)
		want = append(want, string(text))
	}
	dir := t.TempDir()
	for format, name := range map[string]string{"parquet": "t.parquet", "arrow": "t.arrow", "stream": "t.arrows"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name),
			exported(t, format, table.Scan(context.Background()), nil), 0o600))
	}
	for module, script := range readers {
		t.Run(module, func(t *testing.T) {
			for _, name := range []string{"t.parquet", "t.arrow", "t.arrows"} {
				if module == "duckdb" && name != "t.parquet" {
					continue
				}
				out := runPython(t, module, script, filepath.Join(dir, name))
				same(t, name, normalized(t, out), normalized(t, strings.Join(want, "\n")))
			}
		})
	}
}

// Other programs read codes and differences, in several pages and row groups.
func TestOtherProgramsReadCodesAndDifferences(t *testing.T) {
	columns := []schema.Column{{Name: "k", Type: schema.Int64}, {Name: "name", Type: schema.String},
		{Name: "n", Type: schema.Binary, Nullable: true},
		{Name: "near", Type: schema.Int32, Nullable: true}, {Name: "far", Type: schema.Uint64},
		{Name: "day", Type: schema.Date}, column(t, "price", "decimal(15,2)")}
	const rows = 8000
	r, all := values.NewRand(17), wordBatches(values.NewRand(1), 10)[0].Columns[0].Dict
	b := batch.New(columns, rows)
	for i, v := range b.Columns[1:3] {
		v.Reset(0)
		v.UseCodes(all, rows)
		for k := range rows {
			if v.Codes[k] = uint32(r.IntN(len(all.Words))); i == 1 && k%7 == 0 {
				v.NeedPresent().Clear(k)
			}
		}
	}
	for k := range rows {
		batch.Raw[int64](b.Columns[0])[k] = int64(3*k) - 5000
		batch.Raw[int32](b.Columns[3])[k] = int32(r.IntN(60_000)) - 30_000
		batch.Raw[int64](b.Columns[4])[k] = int64(r.Uint64()>>20) + 1<<60
		batch.Raw[int32](b.Columns[5])[k] = int32(r.IntN(30_000)) - 10_000
		batch.Raw[int64](b.Columns[6])[k] = int64(r.IntN(1e9)) - 5e8
		if k%11 == 0 {
			b.Columns[3].NeedPresent().Clear(k)
		}
	}
	var want []string
	for i := range rows {
		row := make([]any, len(columns))
		for c, v := range b.Columns {
			row[c] = pythonText(&columns[c], v.Cell(i))
		}
		line := must.Get(json.Marshal(row))(t)
		want = append(want, string(line))
	}
	p, data := writeBatches(t, columns, ParquetOptions{RowGroupRows: 5000}, []*batch.RecordBatch{b})
	for _, i := range []int{0, 3, 4, 5, 6} {
		if !p.columns[i].delta {
			t.Errorf("%s is not stored as differences", columns[i].Name)
		}
	}
	file := filepath.Join(t.TempDir(), "t.parquet")
	must.Do(t, os.WriteFile(file, data, 0o600))
	for module, script := range readers {
		t.Run(module, func(t *testing.T) {
			out := runPython(t, module, script, file)
			same(t, module, normalized(t, out), normalized(t, strings.Join(want, "\n")))
		})
	}
}

// normalized returns lines of JSON in one form.
func normalized(t *testing.T, text string) []string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(text) {
		var v any
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		must.Do(t, d.Decode(&v), line)
		out := must.Get(json.Marshal(v))(t)
		lines = append(lines, string(out))
	}
	return lines
}

// writers are programs that read a Parquet file and write its rows to others, whose names they
// print.
var writers = map[string]string{
	"pyarrow": `
import sys, pyarrow.parquet as pq, pyarrow.ipc as ipc, pyarrow as pa
t, out = pq.read_table(sys.argv[1]), sys.argv[2]
for i, o in enumerate([dict(), dict(data_page_version='2.0', compression='zstd'), dict(use_dictionary=False, compression='gzip', row_group_size=500),
    dict(compression='brotli', data_page_size=1000), dict(compression='lz4'), dict(version='2.4', compression='none'), dict(store_schema=False)]):
    name = f'{out}/{i}.parquet'
    pq.write_table(t, name, **o)
    print(name)
with pa.OSFile(out + '/0.arrow', 'wb') as f, ipc.new_file(f, t.schema, options=ipc.IpcWriteOptions(compression='lz4')) as w: w.write_table(t, max_chunksize=700)
print(out + '/0.arrow')
with pa.OSFile(out + '/0.arrows', 'wb') as f, ipc.new_stream(f, t.schema) as w: w.write_table(t, max_chunksize=700)
print(out + '/0.arrows')
d = t.set_column(t.schema.get_field_index('string'), 'string', t['string'].dictionary_encode())
with pa.OSFile(out + '/1.arrows', 'wb') as f, ipc.new_stream(f, d.schema) as w: w.write_table(d, max_chunksize=700)
print(out + '/1.arrows')
`,
	"duckdb": `
import sys, duckdb
c = duckdb.connect()
for i, o in enumerate(["", ", compression zstd, row_group_size 500"]):
    name = f'{sys.argv[2]}/{i}.parquet'
    c.execute(f"copy (from '{sys.argv[1]}' order by k, name) to '{name}' (format parquet{o})")
    print(name)
`,
	"polars": `
import sys, polars
t, out = polars.read_parquet(sys.argv[1]), sys.argv[2]
t.write_parquet(out + '/0.parquet')
print(out + '/0.parquet')
t.write_ipc(out + '/0.arrow')
print(out + '/0.arrow')
t.write_ipc_stream(out + '/0.arrows', compression='zstd')
print(out + '/0.arrows')
`,
}

// Files of other programs have the same rows, all and selected ones. Their types have the same
// cells.
func TestFilesOfOtherProgramsAreRead(t *testing.T) {
	table := judgedTable(t)
	ours := filepath.Join(t.TempDir(), "ours.parquet")
	must.Do(t, os.WriteFile(ours, exported(t, "parquet", table.Scan(context.Background()), nil), 0o600))
	all := rowsOf(t, table)
	where := oribi.And(oribi.Gt("k", 0), oribi.Le("decimal(18,2)", 1000), oribi.Ne("string", "x"))
	some := rowsOf(t, table, oribi.Columns("name", "when", "k"), oribi.Where(where))
	for module, script := range writers {
		t.Run(module, func(t *testing.T) {
			mem := checked(t)
			for name := range strings.FieldsSeq(runPython(t, module, script, ours, t.TempDir())) {
				data := must.Get(os.ReadFile(name))(t)
				format := map[string]string{".parquet": "parquet", ".arrow": "arrow",
					".arrows": "arrow"}[filepath.Ext(name)]
				f, rows := opened(t, format, data, mem, ReadOptions{})
				same(t, name, recordRows(t, rows), all)
				rows.Release()
				rows = must.Get(f.Read(context.Background(),
					ReadOptions{Columns: []string{"name", "when", "k"}, Where: []oribi.Predicate{where}}))(t)
				same(t, name+", selected", recordRows(t, rows), some)
				rows.Release()
				f.Close()
			}
		})
	}
}

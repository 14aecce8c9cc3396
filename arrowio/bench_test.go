package arrowio

import (
	"bytes"
	"context"
	"io"
	"os"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/lineitemtest"
	"github.com/oribi-db/oribi/internal/must"
)

// lineitemTable returns a table with lineitem, ingested: 600,000 rows, or 20,000 with -short.
func lineitemTable(b *testing.B) (*oribi.Store, *oribi.Table) {
	b.Helper()
	rows := lineitemtest.Rows
	if testing.Short() {
		rows = 20_000
	}
	store := must.Get(oribi.Open(b.TempDir(), &oribi.Options{Manual: true}))(b)
	b.Cleanup(func() { store.Close() })
	s, sorted := lineitemtest.LoadTable(b, rows)
	table := must.Get(store.CreateTable("lineitem", s))(b)
	must.Get2(table.Ingest(context.Background(), func(yield func([]*batch.Vector, error) bool) {
		yield(sorted, nil)
	}))(b)
	return store, table
}

// counter counts the bytes that it is given.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return c.w.Write(p)
}

func BenchmarkExport(b *testing.B) {
	_, table := lineitemTable(b)
	for _, bc := range []struct {
		name  string
		write func(w io.Writer, r *scanReader) (int64, error)
	}{
		{"parquet/codec=snappy", func(w io.Writer, r *scanReader) (int64, error) {
			return WriteParquet(w, r, ParquetOptions{Compression: Snappy})
		}},
		{"parquet/codec=zstd", func(w io.Writer, r *scanReader) (int64, error) {
			return WriteParquet(w, r, ParquetOptions{})
		}},
		{"stream", func(w io.Writer, r *scanReader) (int64, error) { return WriteStream(w, r, ArrowOptions{}) }},
	} {
		b.Run("format="+bc.name, func(b *testing.B) {
			rows, size := int64(0), int64(0)
			for b.Loop() {
				r := must.Get(newReader(table.Scan(context.Background()), ReaderOptions{}))(b)
				out := &counter{w: io.Discard}
				n := must.Get(bc.write(out, r))(b)
				r.Release()
				rows, size = rows+n, size+out.n
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(size)/b.Elapsed().Seconds()/1e6, "MB/s")
			b.ReportMetric(float64(size)/float64(rows), "B/row")
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	store, table := lineitemTable(b)
	r := must.Get(newReader(table.Scan(context.Background()), ReaderOptions{}))(b)
	var out bytes.Buffer
	must.Get(WriteParquet(&out, r, ParquetOptions{}))(b)
	r.Release()
	if name := os.Getenv("ORIBI_KEEP_PARQUET"); name != "" {
		must.Do(b, os.WriteFile(name, out.Bytes(), 0o600))
	}
	rows := int64(0)
	for b.Loop() {
		f := must.Get(OpenParquet(bytes.NewReader(out.Bytes()), int64(out.Len()), OpenOptions{}))(b)
		in := must.Get(f.Read(context.Background(), ReadOptions{}))(b)
		s := must.Get(f.Definition().Table())(b)
		into := must.Get(store.CreateTable("loaded", s))(b)
		_, n := must.Get2(Ingest(context.Background(), into, in))(b)
		in.Release()
		f.Close()
		must.Do(b, store.DropTable("loaded"))
		rows += n
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}

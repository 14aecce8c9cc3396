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
				r, err := newReader(table.Scan(context.Background()), ReaderOptions{})
				if err != nil {
					b.Fatal(err)
				}
				out := &counter{w: io.Discard}
				n, err := bc.write(out, r)
				if err != nil {
					b.Fatal(err)
				}
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
	r, err := newReader(table.Scan(context.Background()), ReaderOptions{})
	if err != nil {
		b.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := WriteParquet(&out, r, ParquetOptions{}); err != nil {
		b.Fatal(err)
	}
	r.Release()
	if name := os.Getenv("ORIBI_KEEP_PARQUET"); name != "" {
		if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	rows := int64(0)
	for b.Loop() {
		f, err := OpenParquet(bytes.NewReader(out.Bytes()), int64(out.Len()), OpenOptions{})
		if err != nil {
			b.Fatal(err)
		}
		in, err := f.Read(context.Background(), ReadOptions{})
		if err != nil {
			b.Fatal(err)
		}
		s, err := f.Definition().Table()
		if err != nil {
			b.Fatal(err)
		}
		into, err := store.CreateTable("loaded", s)
		if err != nil {
			b.Fatal(err)
		}
		_, n, err := Ingest(context.Background(), into, in)
		if err != nil {
			b.Fatal(err)
		}
		in.Release()
		f.Close()
		if err := store.DropTable("loaded"); err != nil {
			b.Fatal(err)
		}
		rows += n
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}

package work

import (
	"fmt"
	"os"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/schema"
)

// DecodeColumn is a column for column-decode. One of Long, Short and Text is set: it returns the
// values.
type DecodeColumn struct {
	Name  string
	Type  schema.Type
	Long  func(it *inputs.Item) int64
	Short func(it *inputs.Item) int32
	Text  func(it *inputs.Item) string
}

// DecodeColumns are the columns of column-decode: ascending, random, few distinct dates, seven
// words.
var DecodeColumns = []DecodeColumn{
	{Name: "l_orderkey", Type: schema.Int64, Long: func(it *inputs.Item) int64 { return it.OrderKey }},
	{Name: "l_extendedprice", Type: schema.Int64, Long: func(it *inputs.Item) int64 { return it.ExtendedPrice }},
	{Name: "l_shipdate", Type: schema.Int32, Short: func(it *inputs.Item) int32 { return it.ShipDate }},
	{Name: "l_shipmode", Type: schema.String, Text: func(it *inputs.Item) string { return it.ShipMode }},
}

// Decode reads all values of a column's file, in windows of batch.WindowRows, and adds them:
// numbers as they are, strings by TextSum.
type Decode func(c *DecodeColumn, file []byte) (rows int64, sum uint64, err error)

// TextSum returns what a string adds to the sum.
func TextSum(s []byte) uint64 { return uint64(len(s))<<8 + uint64(s[len(s)-1]) }

func columnDecode(more []harness.Peer) harness.Workload {
	return harness.Workload{
		Name: "column-decode",
		About: "open, decode and add l_orderkey, l_extendedprice (int64), l_shipdate (int32) and l_shipmode " +
			"(string), each a file in memory, one thread",
		Unit: "values/s", More: true, MemoryLimit: peakLimit, Inputs: lineitemInputs,
		Peers: append([]harness.Peer{{Name: "oribi", Ours: true, Prepare: writeCFiles,
			Measure: func(env *harness.Env) (harness.Measurement, error) {
				return MeasureDecode(env, ".cfile", decodeCFile)
			}}}, more...),
		Floors: []harness.Floor{{Peer: "oribi", Figure: 150e6, Against: "arrow-go", Ratio: 1, Least: true}},
	}
}

// MeasureDecode decodes the file of each column, named after the column with the suffix, once to
// warm up and then Passes times. The metrics are millions of values per second for each column, and
// the stored bytes per value.
func MeasureDecode(env *harness.Env, suffix string, decode Decode) (harness.Measurement, error) {
	m := harness.Measurement{Metrics: map[string]float64{}}
	files, stored := make([][]byte, len(DecodeColumns)), 0
	for i := range files {
		var err error
		if files[i], err = os.ReadFile(env.Path(DecodeColumns[i].Name + suffix)); err != nil {
			return m, err
		}
		stored += len(files[i])
	}
	spent := make([]time.Duration, len(files))
	values := make([]int64, len(files))
	pass := func() (sums string, err error) {
		for i, file := range files {
			c := &DecodeColumns[i]
			start := time.Now()
			rows, sum, err := decode(c, file)
			spent[i] += time.Since(start)
			if err != nil {
				return "", fmt.Errorf("%s: %w", c.Name, err)
			}
			values[i] += rows
			sums += fmt.Sprintf("%s %d rows sum %x; ", c.Name, rows, sum)
		}
		return sums, nil
	}
	want, err := pass()
	if err != nil {
		return m, err
	}
	clear(spent)
	clear(values)
	took, err := env.Clock(func() error {
		for range env.Scale.Passes {
			sums, err := pass()
			if err != nil {
				return err
			}
			if sums != want {
				return fmt.Errorf("the sums are %s, were %s", sums, want)
			}
		}
		return nil
	})
	total := int64(0) // time of all passes
	for i, n := range values {
		total += n
		m.Metrics["M/s "+DecodeColumns[i].Name] = float64(n) / spent[i].Seconds() / 1e6
	}
	m.Value, m.Checksum = float64(total)/took.Seconds(), want
	m.Metrics["bytes/value"] = float64(stored) * float64(env.Scale.Passes) / float64(total)
	return m, err
}

// writeCFiles writes each column with the options of a table.
func writeCFiles(env *harness.Env) error {
	files, writers, vectors := make([]block.Memory, len(DecodeColumns)), make([]*cfile.Writer, len(DecodeColumns)),
		make([]*batch.Vector, len(DecodeColumns))
	for i := range DecodeColumns {
		t := DecodeColumns[i].Type
		var err error
		writers[i], err = cfile.NewWriter(&files[i],
			cfile.WriterOptions{Type: t, Compression: schema.DefaultCompression.Resolve(t), PositionalIndex: true})
		if err != nil {
			return err
		}
		vectors[i] = &batch.Vector{Type: t}
	}
	err := EachChunk(env, batch.WindowRows, func(items []inputs.Item) error {
		for i, v := range vectors {
			DecodeColumns[i].fill(v, items)
			if err := writers[i].Append(v); err != nil {
				return err
			}
		}
		return nil
	})
	for i := 0; i < len(writers) && err == nil; i++ {
		if err = writers[i].Finish(); err == nil {
			err = os.WriteFile(env.Path(DecodeColumns[i].Name+".cfile"), files[i].Bytes, 0o600)
		}
	}
	return err
}

// fill sets v to the column's values of items.
func (c *DecodeColumn) fill(v *batch.Vector, items []inputs.Item) {
	v.Reset(len(items))
	for i := range items {
		switch {
		case c.Long != nil:
			batch.Values[int64](v)[i] = c.Long(&items[i])
		case c.Short != nil:
			batch.Values[int32](v)[i] = c.Short(&items[i])
		default:
			v.Bytes[i] = []byte(c.Text(&items[i]))
		}
	}
}

func decodeCFile(c *DecodeColumn, file []byte) (rows int64, sum uint64, err error) {
	r, err := cfile.Open(&block.Memory{Bytes: file}, cfile.ReaderOptions{})
	if err != nil {
		return 0, 0, err
	}
	cr, v := r.NewColumnReader(), &batch.Vector{Type: c.Type}
	for rows < r.Rows() {
		n, err := cr.ReadVector(batch.Ordinal(rows), batch.WindowRows, v)
		if err != nil {
			return 0, 0, err
		}
		rows += int64(n)
		switch {
		case c.Long != nil:
			for _, x := range batch.Values[int64](v) {
				sum += uint64(x)
			}
		case c.Short != nil:
			for _, x := range batch.Values[int32](v) {
				sum += uint64(x)
			}
		default:
			v.Materialize()
			for _, s := range v.Bytes {
				sum += TextSum(s)
			}
		}
	}
	return rows, sum, nil
}

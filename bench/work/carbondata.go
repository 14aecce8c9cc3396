package work

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
	"github.com/oribi-db/oribi/carbondata"
	"github.com/oribi-db/oribi/schema"
)

// CarbonRead is a read of lineitem from a folder of CarbonData files.
type CarbonRead struct {
	Workload string
	Columns  []string // nil: all
	Filtered bool     // only rows with l_partkey ≤ CarbonMost, a thousandth

	about string
}

// CarbonReads are the reads.
var CarbonReads = []CarbonRead{
	{Workload: "carbondata-read-all", about: "all 16 columns of all rows"},
	{Workload: "carbondata-read-column", Columns: []string{"l_partkey"}, about: "l_partkey (LONG) of all rows"},
	{Workload: "carbondata-read-filter", Filtered: true,
		about: fmt.Sprintf("all 16 columns of the rows with %s ≤ %d, a thousandth of all, some in each page",
			CarbonFiltered, CarbonMost)},
}

// The filter of the reads.
const (
	CarbonFiltered = "l_partkey"
	CarbonMost     = 200
)

// CarbonPeer is the name of the peer, CarbonData's SDK, and of its module.
const CarbonPeer = "carbondata"

// CarbonReaders are the names of the peers that read: with the SDK's row reader, and with its
// vector reader.
var CarbonReaders = []string{CarbonPeer + "-row", CarbonPeer + "-vector"}

// Names of the workloads that write lineitem.
const (
	CarbonWrite = "carbondata-write"
	CarbonSize  = "carbondata-size"
)

const (
	carbonFolder  = "lineitem-carbondata" // input of the reads
	carbonWritten = "written"
)

// CarbonFolder returns the folder that the peers read, an input of the run.
func CarbonFolder(env *harness.Env) string { return env.Input(carbonFolder) }

// CarbonText returns the rows that the peers write, an input of the run.
func CarbonText(env *harness.Env) string { return env.Input(Lineitem) }

// CarbonEnough is the minimum duration of a measurement.
func CarbonEnough(env *harness.Env) time.Duration { return 2 * enough(env) }

func carbonRead(c CarbonRead, more []harness.Peer) harness.Workload {
	return harness.Workload{
		Name: c.Workload, About: "lineitem from a CarbonData folder with default settings: " + c.about +
			", from the page cache; every value is used",
		Unit: "rows/s", More: true, MemoryLimit: peakLimit, Inputs: carbonInputs,
		Peers:  append([]harness.Peer{{Name: "oribi", Ours: true, Measure: c.measure}}, more...),
		Floors: []harness.Floor{{Peer: "oribi", Against: harness.BestPeer, Ratio: 3, Least: true}},
	}
}

func carbonWrite(more []harness.Peer) harness.Workload {
	return harness.Workload{
		Name: CarbonWrite,
		About: "write lineitem to a CarbonData folder with default settings: no sort columns, Snappy, local " +
			"dictionaries; rows prepared in advance",
		Unit: "rows/s", More: true, Fresh: true, MemoryLimit: peakLimit, Inputs: lineitemInputs,
		Peers: append([]harness.Peer{{Name: "oribi", Ours: true, Measure: writeCarbon, Memory: streamCarbon}},
			more...),
		Floors: []harness.Floor{{Peer: "oribi", Against: CarbonPeer, Ratio: 2, Least: true}},
	}
}

func carbonSize(more []harness.Peer) harness.Workload {
	w := carbonWrite(more)
	w.Name, w.About, w.Unit, w.More = CarbonSize,
		"size of the CarbonData folders of carbondata-write", "bytes/row", false
	w.Of, w.Derive = CarbonWrite, carbonBytes
	for i := range w.Peers {
		measure := w.Peers[i].Measure
		if measure == nil {
			continue
		}
		w.Peers[i].Measure = func(env *harness.Env) (harness.Measurement, error) {
			m, err := measure(env)
			return carbonBytes(m), err
		}
	}
	w.Floors = []harness.Floor{{Peer: "oribi", Against: CarbonPeer, Ratio: 1.05}}
	return w
}

const carbonBytesMetric = "bytes/row"

func carbonBytes(m harness.Measurement) harness.Measurement {
	m.Value, m.Metrics = m.Metrics[carbonBytesMetric], nil
	return m
}

// carbonInputs makes the folder that all peers read, unless it exists.
func carbonInputs(env *harness.Env) error {
	if _, err := os.Stat(CarbonFolder(env)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := lineitemInputs(env); err != nil {
		return err
	}
	return streamTo(env, CarbonFolder(env))
}

// carbonColumns returns the columns of lineitem.
func carbonColumns() (*schema.Schema, []carbondata.Column, error) {
	s, err := inputs.LineitemSchema()
	if err != nil {
		return nil, nil, err
	}
	columns := make([]carbondata.Column, len(s.Columns))
	for i, c := range s.Columns {
		columns[i] = carbondata.Column{Name: c.Name}
		switch c.Type {
		case schema.Int64:
			columns[i].Type = carbondata.Long
		case schema.Int32:
			columns[i].Type = carbondata.Int
		case schema.Decimal64:
			columns[i].Type, columns[i].Precision, columns[i].Scale = carbondata.Decimal, c.Precision, c.Scale
		case schema.Date:
			columns[i].Type = carbondata.Date
		default:
			columns[i].Type = carbondata.String
		}
	}
	return s, columns, nil
}

// carbonBatch returns a batch of items.
func carbonBatch(s *schema.Schema, items []inputs.Item) *batch.RecordBatch {
	b := batch.New(s.Columns, len(items))
	inputs.FillVectors(b.Columns, items)
	return b
}

// streamTo writes a folder without preparing all rows in advance.
func streamTo(env *harness.Env, dir string) error {
	s, columns, err := carbonColumns()
	if err != nil {
		return err
	}
	w, err := carbondata.Create(dir, columns, carbondata.WriterOptions{})
	if err != nil {
		return err
	}
	defer w.Abort() // nothing after Close
	if err := EachChunk(env, batchRows, func(items []inputs.Item) error {
		return w.AppendBatch(carbonBatch(s, items))
	}); err != nil {
		return err
	}
	return w.Close()
}

func streamCarbon(env *harness.Env) error { return streamTo(env, env.Path(carbonWritten)) }

func writeCarbon(env *harness.Env) (m harness.Measurement, err error) {
	s, columns, err := carbonColumns()
	if err != nil {
		return m, err
	}
	var batches []*batch.RecordBatch
	if err := EachChunk(env, batchRows, func(items []inputs.Item) error {
		batches = append(batches, carbonBatch(s, items))
		return nil
	}); err != nil {
		return m, err
	}
	took, err := env.Clock(func() error {
		w, err := carbondata.Create(env.Path(carbonWritten), columns, carbondata.WriterOptions{})
		if err != nil {
			return err
		}
		defer w.Abort() // nothing after Close
		for _, b := range batches {
			if err := w.AppendBatch(b); err != nil {
				return err
			}
		}
		return w.Close()
	})
	if err != nil {
		return m, err
	}
	return CarbonResult(env.Path(carbonWritten), took)
}

// CarbonResult returns the measurement of a folder that was written in the given time.
func CarbonResult(dir string, took time.Duration) (m harness.Measurement, err error) {
	rows, crc, err := (&CarbonRead{}).check(dir)
	if err != nil {
		return m, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return m, err
	}
	bytes := int64(0)
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil {
			return m, err
		}
		bytes += info.Size()
	}
	m.Value, m.Checksum = float64(rows)/took.Seconds(), CarbonSum(rows, crc)
	m.Metrics = map[string]float64{carbonBytesMetric: float64(bytes) / float64(rows)}
	return m, nil
}

// CarbonSum returns the checksum of rows.
func CarbonSum(rows int64, crc uint32) string { return fmt.Sprintf("%d rows crc %08x", rows, crc) }

// Names returns the columns to read.
func (c *CarbonRead) Names() ([]string, error) {
	if c.Columns != nil {
		return c.Columns, nil
	}
	s, _, err := carbonColumns()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(s.Columns))
	for i := range names {
		names[i] = s.Columns[i].Name
	}
	return names, nil
}

func (c *CarbonRead) options() carbondata.ScanOptions {
	o := carbondata.ScanOptions{Columns: c.Columns}
	if c.Filtered {
		o.Filter = carbondata.Le(CarbonFiltered, int64(CarbonMost))
	}
	return o
}

// check reads the rows one by one, and returns their number and the CRC32C of all values: a number
// as 8 bytes, big-endian; a string after its length, likewise.
func (c *CarbonRead) check(dir string) (rows int64, crc uint32, err error) {
	names, err := c.Names()
	if err != nil {
		return 0, 0, err
	}
	t, err := carbondata.Open(dir)
	if err != nil {
		return 0, 0, err
	}
	defer t.Close()
	o := c.options()
	o.Columns = names
	var buf []byte
	for row, err := range t.Rows(context.Background(), o) {
		if err != nil {
			return 0, 0, err
		}
		buf = buf[:0]
		for _, v := range row {
			number, text := int64(0), ""
			switch v := v.(type) {
			case int64:
				number = v
			case int32:
				number = int64(v)
			case batch.Int128:
				number = int64(v.Lo)
			case carbondata.Days:
				number = int64(v)
			case string:
				number, text = int64(len(v)), v
			default:
				return 0, 0, fmt.Errorf("a value %v (%T)", v, v)
			}
			buf = append(binary.BigEndian.AppendUint64(buf, uint64(number)), text...)
		}
		crc = crc32.Update(crc, castagnoli, buf)
		rows++
	}
	return rows, crc, nil
}

// measure times scans in batches, after one pass that reads rows and a scan to warm up.
func (c CarbonRead) measure(env *harness.Env) (m harness.Measurement, err error) {
	dir := CarbonFolder(env)
	all, _, err := (&CarbonRead{}).check(dir)
	if err != nil {
		return m, err
	}
	rows, crc, err := c.check(dir)
	if err != nil {
		return m, err
	}
	found, sum, err := c.scan(dir)
	if err != nil {
		return m, err
	}
	passes := 0
	took, err := env.Clock(func() error {
		for begin := time.Now(); passes < 2 || time.Since(begin) < CarbonEnough(env); passes++ {
			n, s, err := c.scan(dir)
			if err != nil {
				return err
			}
			if n != found || s != sum || n != rows {
				return fmt.Errorf("%d rows sum %d, before %d rows sum %d; %d rows one by one", n, s, found, sum, rows)
			}
		}
		return nil
	})
	m.Value = float64(all) * float64(passes) / took.Seconds()
	m.Checksum = CarbonSum(rows, crc)
	return m, err
}

// scan opens the folder and adds up its values.
func (c *CarbonRead) scan(dir string) (rows, sum int64, err error) {
	t, err := carbondata.Open(dir)
	if err != nil {
		return 0, 0, err
	}
	defer t.Close()
	s, err := t.Scan(context.Background(), c.options())
	if err != nil {
		return 0, 0, err
	}
	defer s.Close()
	for s.Next() {
		b := s.Batch()
		b.Compact()
		rows += int64(b.Len)
		for _, v := range b.Columns {
			sum += sumVector(v)
		}
	}
	return rows, sum, s.Err()
}

// sumVector adds the values of a column: numbers, and the length and the last byte of strings.
func sumVector(v *batch.Vector) (sum int64) {
	text := func(s []byte) int64 { return int64(len(s)) + int64(s[len(s)-1]) }
	switch {
	case v.Dict != nil:
		for _, code := range v.Codes[:v.Len] {
			sum += text(v.Dict.Words[code])
		}
	case v.Type.Variable():
		for _, s := range v.Bytes[:v.Len] {
			sum += text(s)
		}
	case v.Type.Width() == 8:
		for _, x := range batch.Raw[int64](v) {
			sum += x
		}
	default:
		for _, x := range batch.Raw[int32](v) {
			sum += int64(x)
		}
	}
	return sum
}

package work

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/arrowio"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
	"github.com/oribi-db/oribi/bench/peer"
)

// LoadParquet is the workload that loads a Parquet file.
const LoadParquet = "load-parquet"

const (
	exportedFile = "lineitem.exported"
	parquetInput = "lineitem.parquet" // input: lineitem as we export it
	exportPeer   = "duckdb-1"
	groupRows    = 1_000_000 // rows of a row group
)

// ParquetInput returns the file that the peers of load-parquet load, an input of the run.
func ParquetInput(env *harness.Env) string { return env.Input(parquetInput) }

// exportParquet measures exports to Parquet, ours and DuckDB's COPY of its own table.
func exportParquet(all []peer.Driver, name string, codec arrowio.Compression) harness.Workload {
	w := harness.Workload{
		Name: name,
		About: fmt.Sprintf("export lineitem to a Parquet file of row groups of a million rows, %s, one thread: from "+
			"the open table to the file in the page cache, per second of processor time", codec),
		Unit: "rows/CPU s", More: true, Group: tableGroup, MemoryLimit: peakLimit, Inputs: tableInputs,
		Floors: []harness.Floor{{Peer: peer.Oribi.Name, Against: exportPeer, Ratio: 1, Least: true}},
	}
	for _, d := range all {
		measure := func(env *harness.Env) (harness.Measurement, error) { return copyParquet(env, &d, codec) }
		switch d.Name {
		case peer.Oribi.Name:
			measure = func(env *harness.Env) (harness.Measurement, error) {
				return export(env, peer.ParquetItems, false, func(w io.Writer, t *oribi.Table) (int64, error) {
					return writeParquet(w, t, codec)
				})
			}
		case exportPeer:
		default:
			continue
		}
		w.Peers = append(w.Peers, harness.Peer{Name: d.Name, Ours: d.Ours, Module: d.Module,
			Prepare: prepareTable(&d), Measure: measure})
	}
	return w
}

// exportArrow measures exports to an Arrow stream.
func exportArrow() harness.Workload {
	stream := func(env *harness.Env) (harness.Measurement, error) {
		m, err := export(env, streamItems, true, func(w io.Writer, t *oribi.Table) (int64, error) {
			r, err := arrowio.NewReader(t.Scan(context.Background()), arrowio.ReaderOptions{})
			if err != nil {
				return 0, err
			}
			defer r.Release()
			return arrowio.WriteStream(w, r, arrowio.ArrowOptions{})
		})
		rows := m.Value
		m.Value, m.Metrics = rows*m.Metrics[bytesByRow], map[string]float64{"rows/CPU s": rows}
		return m, err
	}
	return harness.Workload{
		Name: "export-arrow",
		About: "export lineitem as an Arrow stream, one thread: from the open table to a writer that drops it, per " +
			"second of processor time",
		Unit: "bytes/CPU s", More: true, Group: tableGroup, MemoryLimit: peakLimit, Inputs: tableInputs,
		Peers: []harness.Peer{{Name: peer.Oribi.Name, Ours: true,
			Prepare: prepareTable(&peer.Oribi), Measure: stream}},
		Floors: []harness.Floor{{Peer: peer.Oribi.Name, Figure: 1e9, Least: true}},
	}
}

func writeParquet(w io.Writer, t *oribi.Table, codec arrowio.Compression) (int64, error) {
	r, err := arrowio.NewReader(t.Scan(context.Background()), arrowio.ReaderOptions{})
	if err != nil {
		return 0, err
	}
	defer r.Release()
	return arrowio.WriteParquet(w, r, arrowio.ParquetOptions{Compression: codec, RowGroupRows: groupRows})
}

// itemsOf calls use with each row of a file that was exported.
type itemsOf func(name string, use func(it *inputs.Item)) error

// export times write with one processor, to a file or, if drop is set, to nothing. In the first
// round it reads the file, which must have the rows of the table.
func export(
	env *harness.Env, items itemsOf, drop bool, write func(w io.Writer, t *oribi.Table) (int64, error),
) (m harness.Measurement, err error) {
	store, t, err := openLineitem(env.Path(storeDir), &oribi.Options{MemoryLimit: peer.CacheBytes})
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	runtime.GOMAXPROCS(1)
	all := func(w io.Writer) error {
		rows, err := write(w, t)
		if err == nil && rows != int64(env.Scale.Table) {
			err = fmt.Errorf("%d rows were exported, want %d", rows, env.Scale.Table)
		}
		return err
	}
	toFile := func(name string) error {
		f, err := os.Create(name)
		if err != nil {
			return err
		}
		return errors.Join(all(f), f.Close())
	}
	timed := toFile
	if drop {
		timed = func(string) error { return all(io.Discard) }
	}
	m, err = timeExport(env, items, toFile, timed)
	if err == nil && checked(env) {
		want, err := checkStore(t)
		if err != nil {
			return m, err
		}
		if m.Checksum != want {
			return m, fmt.Errorf("the file has %s, the table %s", m.Checksum, want)
		}
	}
	return m, err
}

// copyParquet times DuckDB's COPY.
func copyParquet(env *harness.Env, d *peer.Driver, codec arrowio.Compression) (harness.Measurement, error) {
	return withTable(env, d, func(l peer.Lineitem) (harness.Measurement, error) {
		s, ok := l.(*peer.SQL)
		if !ok {
			return harness.Measurement{}, fmt.Errorf("a table of type %T", l)
		}
		toFile := func(name string) error {
			return s.Do(fmt.Sprintf("COPY lineitem TO '%s' (FORMAT parquet, COMPRESSION '%s', ROW_GROUP_SIZE %d)", name,
				codec, groupRows))
		}
		return timeExport(env, peer.ParquetItems, toFile, toFile)
	})
}

// timeExport times exports, after one to a file to warm up. The checksum is computed from the rows
// that are read from the file in the first round.
func timeExport(
	env *harness.Env, items itemsOf, toFile, timed func(name string) error,
) (m harness.Measurement, err error) {
	name := env.Path(exportedFile)
	defer os.Remove(name) // the directory is the state of other workloads
	if err := toFile(name); err != nil {
		return m, err
	}
	passes := 0
	took, err := env.Clock(func() error {
		for begin := time.Now(); passes == 0 || time.Since(begin) < 2*enough(env); passes++ {
			if err := timed(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return m, err
	}
	info, err := os.Stat(name)
	if err != nil {
		return m, err
	}
	spent := env.CPU()
	if spent <= 0 { // too short for the system's clock
		spent = took.Seconds()
	}
	m.Value = float64(env.Scale.Table) * float64(passes) / spent
	m.Metrics = map[string]float64{bytesByRow: float64(info.Size()) / float64(env.Scale.Table)}
	if checked(env) {
		var sum checksum
		if err := items(name, sum.addItem); err != nil {
			return m, err
		}
		m.Checksum = sum.String()
	}
	return m, nil
}

// streamItems reads an Arrow stream.
func streamItems(name string, use func(it *inputs.Item)) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	in, err := arrowio.OpenStream(f, arrowio.OpenOptions{})
	if err != nil {
		return err
	}
	defer in.Close()
	rows, err := in.Read(context.Background(), arrowio.ReadOptions{})
	if err != nil {
		return err
	}
	defer rows.Release()
	var d inputs.Decoder
	for b, err := range rows.Batches() {
		if err != nil {
			return err
		}
		d.Batch(b, use)
	}
	return nil
}

// loadParquet measures "oribi table load" of a Parquet file: processes, from start to end, as load
// does with a text file of the same rows.
func loadParquet(more []harness.Peer) harness.Workload {
	return harness.Workload{
		Name: LoadParquet,
		About: "load lineitem from a Parquet file, as we export it, into an empty table with a primary key, from the " +
			"file to the closed store; oribi-csv loads the text file of load",
		Unit: "s", Fresh: true, MemoryLimit: peakLimit, Inputs: loadParquetInputs,
		Peers: append([]harness.Peer{
			{Name: "oribi", Ours: true, Prepare: prepareLoad, Command: loadParquetCommand, Check: sumLoaded},
			{Name: "oribi-csv", Ours: true, Prepare: prepareLoad, Command: loadCommand, Check: sumLoaded},
		}, more...),
		Floors: []harness.Floor{{Peer: "oribi", Against: "oribi-csv", Ratio: 0.667}},
	}
}

func loadParquetCommand(env *harness.Env) (*exec.Cmd, error) {
	return exec.Command(env.Tool, "table", "load", env.Path(storeDir), lineitemTable, ParquetInput(env)), nil
}

// loadParquetInputs makes the text file and, of it, the Parquet file.
func loadParquetInputs(env *harness.Env) error {
	if err := lineitemInputs(env); err != nil {
		return err
	}
	if _, err := os.Stat(ParquetInput(env)); err == nil {
		return nil
	}
	dir, err := os.MkdirTemp(env.Inputs, "export-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	in := *env
	in.Dir = dir
	if err := prepareLoad(&in); err != nil {
		return err
	}
	load, err := loadCommand(&in)
	if err != nil {
		return err
	}
	made := filepath.Join(dir, parquetInput)
	for _, c := range []*exec.Cmd{load,
		exec.Command(env.Tool, "table", "export", in.Path(storeDir), lineitemTable, made)} {
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", c.Args[2], err, out)
		}
	}
	return os.Rename(made, ParquetInput(env))
}

// LoadedSums returns the checksum of a loaded lineitem: sums over all rows, l_extendedprice in
// hundredths, l_shipdate in days since 1970, l_comment in bytes.
func LoadedSums(rows, orderKeys, prices, shipDates, comments int64) string {
	return fmt.Sprintf("%d rows, sums %d %d %d %d", rows, orderKeys, prices, shipDates, comments)
}

func sumLoaded(env *harness.Env) (sum string, err error) {
	store, t, err := openLineitem(env.Path(storeDir), nil)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	var rows, keys, prices, dates, comments int64
	columns := oribi.Columns("l_orderkey", "l_extendedprice", "l_shipdate", "l_comment")
	for b, err := range t.Scan(context.Background(), columns, oribi.AnyOrder()).Batches() {
		if err != nil {
			return "", err
		}
		b.Compact()
		rows += int64(b.Len)
		for i := range b.Len {
			keys += batch.Values[int64](b.Columns[0])[i]
			prices += batch.Values[int64](b.Columns[1])[i]
			dates += int64(batch.Values[int32](b.Columns[2])[i])
			comments += int64(len(b.Columns[3].Cell(i)))
		}
	}
	return LoadedSums(rows, keys, prices, dates, comments), nil
}

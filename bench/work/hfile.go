package work

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/hfile"
)

// HFileCase is a form of the HFile that the hfile workloads read. All forms have the same cells.
type HFileCase struct {
	name     string
	codec    hfile.Codec
	encoding hfile.Encoding
	like     *sstable.CompressionProfile // of Pebble's table
}

// HFileCases are the forms.
var HFileCases = []HFileCase{
	{"none", hfile.None, hfile.EncodingNone, sstable.NoCompression},
	{"fast-diff", hfile.None, hfile.EncodingFastDiff, sstable.NoCompression},
	{"gz", hfile.GZ, hfile.EncodingNone, sstable.ZstdCompression},
	{"gz-fast-diff", hfile.GZ, hfile.EncodingFastDiff, sstable.ZstdCompression},
}

// Scan returns the name of the workload that scans the file.
func (c HFileCase) Scan() string { return "hfile-scan-" + c.name }

// Get returns the name of the workload that reads rows of the file by key.
func (c HFileCase) Get() string { return "hfile-get-" + c.name }

// File returns the name of the file, an input of the run.
func (c HFileCase) File(env *harness.Env) string { return env.Input("cells-" + c.name + ".hfile") }

func (c HFileCase) form() string { return fmt.Sprintf("codec %s, encoding %s", c.codec, c.encoding) }

// HFileCacheBytes is the size of the block cache of the peers that read rows by key. All blocks
// fit.
const HFileCacheBytes = storeMemory

// HFileEnough is the minimum duration of a measurement.
func HFileEnough(env *harness.Env) time.Duration { return 2 * enough(env) }

func hfileScan(c HFileCase, more []harness.Peer) harness.Workload {
	return harness.Workload{
		Name: c.Scan(), About: "scan all cells of an HFile, four per row, " + c.form() +
			", blocks of 64 KiB, checksums verified, from the page cache, one caller",
		Unit: "cells/s", More: true, MemoryLimit: peakLimit, Inputs: c.write,
		Peers: append([]harness.Peer{
			{Name: "oribi", Ours: true, Measure: c.scanOurs},
			{Name: "pebble-sstable", Prepare: c.writeSSTable, Measure: scanSSTable},
		}, more...),
		Floors: []harness.Floor{{Peer: "oribi", Against: "hbase", Ratio: 2, Least: true}},
	}
}

func hfileGet(c HFileCase, more []harness.Peer) harness.Workload {
	return harness.Workload{
		Name: c.Get(),
		About: fmt.Sprintf("read the four cells of a row of an HFile by key, %d rows in random order, %s, blocks of "+
			"64 KiB in the block cache", hfileRows, c.form()),
		Unit: "µs", MemoryLimit: peakLimit, Inputs: c.write,
		Peers: append([]harness.Peer{
			{Name: "oribi", Ours: true, Measure: c.getOurs},
			{Name: "oribi-cursor", Ours: true, Measure: c.seekOurs},
			{Name: "pebble-sstable", Prepare: c.writeSSTable, Measure: getSSTable},
		}, more...),
		Floors: []harness.Floor{{Peer: "oribi", Against: "hbase", Ratio: 0.5}},
	}
}

// The cells: rows "user…" with ascending numbers, four columns each, values of three words.
const (
	hfileColumns = 4
	hfileRows    = 10_000 // rows read by key at full scale
	hfileTime    = 1_700_000_000_000
)

var hfileFamily = []byte("f")

func hfileRow(i int) string { return fmt.Sprintf("user%010d", 37*i) }

// HFileRows returns the rows that are read by key, evenly spaced.
func HFileRows(env *harness.Env) []string {
	all := env.Scale.Table / hfileColumns
	rows := make([]string, min(all, hfileRows))
	for i := range rows {
		rows[i] = hfileRow(i * (all / len(rows)))
	}
	return rows
}

// hfileCells calls use with each cell, in order; the cell is valid during the call.
func hfileCells(env *harness.Env, use func(c *hfile.Cell) error) error {
	words := strings.Fields("amber basin cedar delta ember fjord grove harbor inlet juniper knoll lagoon meadow " +
		"nectar orchard prairie")
	qualifiers := [hfileColumns][]byte{[]byte("city"), []byte("email"), []byte("name"), []byte("phone")}
	state := uint64(1)
	random := func() uint64 { // xorshift: the cells are the same in each run
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		return state
	}
	c := hfile.Cell{Key: hfile.Key{Family: hfileFamily, Type: hfile.Put}}
	for i := range env.Scale.Table / hfileColumns {
		c.Row = append(c.Row[:0], hfileRow(i)...)
		for _, q := range qualifiers {
			r := random()
			c.Qualifier, c.Timestamp = q, hfileTime+int64(r>>40)
			c.Value = fmt.Appendf(c.Value[:0], "%s %s %s %d", words[r&15], words[r>>4&15],
				words[r>>8&15], r>>12&0xffffff)
			if err := use(&c); err != nil {
				return err
			}
		}
	}
	return nil
}

// write writes the file unless it exists.
func (c HFileCase) write(env *harness.Env) error {
	if _, err := os.Stat(c.File(env)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	w, err := hfile.Create(c.File(env), hfile.WriterOptions{Codec: c.codec, Encoding: c.encoding})
	if err != nil {
		return err
	}
	defer w.Abort() // nothing after Finish
	if err := hfileCells(env, func(c *hfile.Cell) error { return w.Append(*c) }); err != nil {
		return err
	}
	return w.Finish()
}

// cellSum is the checksum of cells: of a part of each cell in timed passes, and of all bytes in the
// pass before them.
type cellSum struct {
	cells, sum int64
	crc        uint32
}

func (s *cellSum) add(row, qualifier []byte, ts int64, value []byte) {
	s.sum += ts + int64(len(value)) + int64(row[len(row)-1]) +
		int64(qualifier[len(qualifier)-1]) + int64(value[len(value)-1])
	s.cells++
}

func (s *cellSum) addAll(row, qualifier []byte, ts int64, value []byte) {
	for _, part := range [][]byte{row, hfileFamily, qualifier,
		binary.BigEndian.AppendUint64(nil, uint64(ts)), {byte(hfile.Put)}, value} {
		s.crc = crc32.Update(s.crc, castagnoli, part)
	}
	s.add(row, qualifier, ts, value)
}

// HFileScanSum returns the checksum of a scan.
func HFileScanSum(cells int64, crc uint32, sum int64) string {
	return fmt.Sprintf("%d cells crc %08x sum %d", cells, crc, sum)
}

// HFileGetSum returns the checksum of reads by key.
func HFileGetSum(cells, sum int64) string { return fmt.Sprintf("%d cells sum %d", cells, sum) }

// measureScan times scans, after one scan that adds all bytes and one to warm up.
func measureScan(env *harness.Env, all, scan func() (cellSum, error)) (m harness.Measurement, err error) {
	whole, err := all()
	if err != nil {
		return m, err
	}
	if _, err := scan(); err != nil {
		return m, err
	}
	passes := 0
	took, err := env.Clock(func() error {
		for begin := time.Now(); passes < 2 || time.Since(begin) < HFileEnough(env); passes++ {
			s, err := scan()
			if err != nil {
				return err
			}
			if s.sum != whole.sum || s.cells != whole.cells {
				return fmt.Errorf("%d cells sum %d, before %d cells sum %d", s.cells, s.sum, whole.cells, whole.sum)
			}
		}
		return nil
	})
	m.Value = float64(whole.cells) * float64(passes) / took.Seconds()
	m.Checksum = HFileScanSum(whole.cells, whole.crc, whole.sum)
	return m, err
}

// measureCells times reads of rows by key.
func measureCells(env *harness.Env, get func(row []byte, s *cellSum) error) (m harness.Measurement, err error) {
	texts := HFileRows(env)
	rows := make([][]byte, len(texts))
	for i, text := range texts {
		rows[i] = []byte(text)
	}
	var whole cellSum
	for _, row := range rows {
		if err := get(row, &whole); err != nil {
			return m, err
		}
	}
	m, err = calls(env, len(rows), env.Scale.Gets, 1, func(i int) (int64, error) {
		var s cellSum
		err := get(rows[i], &s)
		return s.sum, err
	})
	m.Checksum = HFileGetSum(whole.cells, whole.sum)
	return m, err
}

func (c HFileCase) scanOurs(env *harness.Env) (m harness.Measurement, err error) {
	f, err := block.OpenFile(c.File(env))
	if err != nil {
		return m, err
	}
	defer f.Close()
	r, err := hfile.Open(f, hfile.ReaderOptions{})
	if err != nil {
		return m, err
	}
	return measureScan(env, func() (s cellSum, err error) {
		for c, err := range r.Cells() {
			if err != nil {
				return s, err
			}
			s.addAll(c.Row, c.Qualifier, c.Timestamp, c.Value)
		}
		return s, nil
	}, func() (s cellSum, err error) {
		cursor := r.NewCursor(hfile.CursorOptions{ReadAhead: true})
		defer cursor.Close()
		for ok := cursor.First(); ok; ok = cursor.Next() {
			c := cursor.Cell()
			s.add(c.Row, c.Qualifier, c.Timestamp, c.Value)
		}
		return s, cursor.Err()
	})
}

// getOurs reads rows with Get, which copies the cells.
func (c HFileCase) getOurs(env *harness.Env) (harness.Measurement, error) {
	return c.cached(env, func(r *hfile.Reader) (harness.Measurement, error) {
		return measureCells(env, func(row []byte, s *cellSum) error {
			cells, err := r.Get(row)
			for i := range cells {
				s.add(cells[i].Row, cells[i].Qualifier, cells[i].Timestamp, cells[i].Value)
			}
			return err
		})
	})
}

// seekOurs reads rows with one cursor, as the other peers do.
func (c HFileCase) seekOurs(env *harness.Env) (harness.Measurement, error) {
	return c.cached(env, func(r *hfile.Reader) (harness.Measurement, error) {
		cursor := r.NewCursor(hfile.CursorOptions{})
		defer cursor.Close()
		return measureCells(env, func(row []byte, s *cellSum) error {
			ok, err := cursor.SeekGE(hfile.FirstOnRow(row))
			for ; ok; ok = cursor.Next() {
				cell := cursor.Cell()
				if string(cell.Row) != string(row) {
					break
				}
				s.add(cell.Row, cell.Qualifier, cell.Timestamp, cell.Value)
			}
			return errors.Join(err, cursor.Err())
		})
	})
}

// cached calls measure with a reader that has all blocks in its cache after the first reads.
func (c HFileCase) cached(env *harness.Env,
	measure func(r *hfile.Reader) (harness.Measurement, error)) (m harness.Measurement, err error) {
	f, err := block.OpenFile(c.File(env))
	if err != nil {
		return m, err
	}
	defer f.Close()
	r, err := hfile.Open(f, hfile.ReaderOptions{Cache: cache.New(HFileCacheBytes)})
	if err != nil {
		return m, err
	}
	return measure(r)
}

// The key in Pebble's table consists of the cell's row, qualifier and timestamp, in HBase's order:
// newer timestamps sort first.

const sstableFile = "cells.sst"

func appendSSTableKey(dst []byte, c *hfile.Cell) []byte {
	dst = append(append(dst, c.Row...), c.Qualifier...)
	return binary.BigEndian.AppendUint64(dst, ^uint64(c.Timestamp))
}

// sstableRowLen is the length of the row in a key, which is constant.
var sstableRowLen = len(hfileRow(0))

// splitSSTableKey splits a key.
func splitSSTableKey(key []byte) (row, qualifier []byte, ts int64) {
	end := len(key) - 8
	return key[:sstableRowLen], key[sstableRowLen:end], int64(^binary.BigEndian.Uint64(key[end:]))
}

// writeSSTable writes the cells as a table of Pebble's newest format, with its defaults.
func (c HFileCase) writeSSTable(env *harness.Env) error {
	f, err := vfs.Default.Create(env.Path(sstableFile), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(f), sstable.WriterOptions{
		Compression: c.like, TableFormat: pebble.FormatNewest.MaxTableFormat()})
	var key []byte
	err = hfileCells(env, func(c *hfile.Cell) error {
		key = appendSSTableKey(key[:0], c)
		return w.Set(key, c.Value)
	})
	return errors.Join(err, w.Close())
}

// openSSTable opens the table, with a block cache unless cacheBytes is 0.
func openSSTable(env *harness.Env, cacheBytes int64) (r *sstable.Reader, done func(), err error) {
	f, err := vfs.Default.Open(env.Path(sstableFile))
	if err != nil {
		return nil, nil, err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	done = func() {}
	var o sstable.ReaderOptions
	if cacheBytes > 0 {
		c := pebble.NewCache(cacheBytes)
		h := c.NewHandle()
		o.CacheOpts.CacheHandle, o.CacheOpts.FileNum = h, 1
		done = func() { h.Close(); c.Unref() }
	}
	if r, err = sstable.NewReader(context.Background(), readable, o); err != nil {
		readable.Close()
		done()
		return nil, nil, err
	}
	unreference := done
	return r, func() { r.Close(); unreference() }, nil
}

func scanSSTable(env *harness.Env) (m harness.Measurement, err error) {
	r, done, err := openSSTable(env, 0)
	if err != nil {
		return m, err
	}
	defer done()
	scan := func(whole bool) (s cellSum, err error) {
		it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
		if err != nil {
			return s, err
		}
		for kv := it.First(); kv != nil; kv = it.Next() {
			row, qualifier, ts := splitSSTableKey(kv.K.UserKey)
			value := kv.InPlaceValue()
			if whole {
				s.addAll(row, qualifier, ts, value)
			} else {
				s.add(row, qualifier, ts, value)
			}
		}
		return s, errors.Join(it.Error(), it.Close())
	}
	return measureScan(env, func() (cellSum, error) {
		return scan(true)
	}, func() (cellSum, error) { return scan(false) })
}

func getSSTable(env *harness.Env) (m harness.Measurement, err error) {
	r, done, err := openSSTable(env, HFileCacheBytes)
	if err != nil {
		return m, err
	}
	defer done()
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return m, err
	}
	defer it.Close()
	return measureCells(env, func(row []byte, s *cellSum) error {
		for kv := it.SeekGE(row, 0); kv != nil; kv = it.Next() {
			got, qualifier, ts := splitSSTableKey(kv.K.UserKey)
			if string(got) != string(row) {
				break
			}
			s.add(got, qualifier, ts, kv.InPlaceValue())
		}
		return it.Error()
	})
}

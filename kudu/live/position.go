package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

// A position is how far a table of a store has been copied to a table of a cluster. Its file is
// replaced after all up to it has arrived, so a copy that goes on there leaves nothing out.
//
// The file is a line of JSON, and a line with the CRC-32C of that line in hex:
//
//	{"format":1,"table":"3a…","cluster":"b7…","target":"c0…","from":7354287404926300160,…}
//	8f1e03c2
type position struct {
	Format  int    `json:"format"`
	Table   string `json:"table"`   // ID of the store's table
	Cluster string `json:"cluster"` // ID of the cluster
	Target  string `json:"target"`  // ID of the cluster's table

	// From is the state of which the first copy is made, and Key, in hex, the encoded key up to which
	// rows have arrived, while Copied is false.
	From   mvcc.Timestamp `json:"from"`
	Key    string         `json:"key"`
	Copied bool           `json:"copied"`

	// Done is the timestamp up to which all write batches have arrived, once Copied is true.
	Done mvcc.Timestamp `json:"done"`
	// Written is the highest timestamp of the cluster's for what has arrived.
	Written mvcc.Timestamp `json:"written"`
	// Open reports that rows may be on their way that are later than the position: the copy has not
	// ended, or was killed.
	Open bool `json:"open"`
	// Repair reports that the tables are to be compared, since rows may be at the target that the store
	// does not have any more.
	Repair bool `json:"repair"`

	// Columns are, by the IDs of the columns of the store's table, the IDs of the target's columns.
	Columns map[uint32]uint32 `json:"columns"`
}

const positionFormat = 1 // file format: never change

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Position keeps how far a copy has come. Save makes it durable before it returns; Load returns nil
// without an error if nothing was saved.
type Position interface {
	Load() ([]byte, error)
	Save(b []byte) error
}

// PositionDir is the directory in a store's directory that has the positions of copies.
const PositionDir = "COPIES"

// filePosition keeps a position in a file.
type filePosition struct{ path string }

// PositionFile returns a Position that is a file. Its directory is made if it is missing.
func PositionFile(path string) Position { return filePosition{path} }

// positionIn returns the file of a copy in a store's directory.
func positionIn(store, table, cluster, target string) Position {
	sum := crc32.Checksum([]byte(cluster+"\x00"+target), castagnoli)
	return filePosition{filepath.Join(store, PositionDir, fmt.Sprintf("%s-%08x.json", table, sum))}
}

func (p filePosition) Load() ([]byte, error) {
	b, err := os.ReadFile(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

func (p filePosition) Save(b []byte) (err error) {
	dir := filepath.Dir(p.path)
	if err := makeDir(dir); err != nil {
		return err
	}
	f, err := os.Create(p.path + ".tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), p.path); err != nil {
		return err
	}
	return vfs.OS.SyncDir(dir)
}

// makeDir makes a directory durably, unless it is there.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	return vfs.OS.SyncDir(filepath.Dir(dir))
}

// lock keeps other processes from the same copy until it is closed. Errors: ErrLocked.
func (p filePosition) lock() (io.Closer, error) {
	if err := makeDir(filepath.Dir(p.path)); err != nil {
		return nil, err
	}
	l, err := vfs.OS.Lock(p.path+".lock", vfs.LockCreate)
	if errors.Is(err, fault.ErrLocked) {
		err = fmt.Errorf("another process makes this copy: %w", err)
	}
	return l, err
}

// loadPosition returns the saved position, nil before the first one.
func loadPosition(p Position) (*position, error) {
	b, err := p.Load()
	if err != nil || b == nil {
		return nil, err
	}
	line, sum, _ := bytes.Cut(b, []byte("\n"))
	if want := fmt.Sprintf("%08x", crc32.Checksum(line, castagnoli)); strings.TrimSpace(string(sum)) != want {
		return nil, fault.Corruptf("position of a copy: its checksum is %q, want %q", sum, want)
	}
	var pos position
	if err := json.Unmarshal(line, &pos); err != nil {
		return nil, fault.Corruptf("position of a copy: %v", err)
	}
	if pos.Format != positionFormat {
		return nil, fault.Unsupportedf("position of a copy: format %d, this program knows %d", pos.Format, positionFormat)
	}
	return &pos, nil
}

func (pos *position) save(p Position) error {
	pos.Format = positionFormat
	line, err := json.Marshal(pos)
	if err != nil {
		return err
	}
	return p.Save(fmt.Appendf(line, "\n%08x\n", crc32.Checksum(line, castagnoli)))
}

package memory

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/salvage"
	"github.com/oribi-db/oribi/vfs"
)

// salvaged returns the directory of the salvaged store.
func (m Store) salvaged() string { return filepath.Join(m.Dir, "salvaged") }

// salvage damages the bloom file of every rowset of the store in dir, so that all rows are written
// anew and nothing is lost, salvages the store to out, and repairs it.
func (m Store) salvage(dir, out string) (err error) {
	places, err := bloomFiles(dir)
	if err != nil {
		return err
	}
	if err := flipBytes(dir, places); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, flipBytes(dir, places)) }()
	var lost error
	_, err = salvage.Run(context.Background(), dir, out, &oribi.Options{MemoryLimit: m.Limit}, func(l salvage.Loss) {
		lost = fmt.Errorf("lost: %+v", l)
	})
	return errors.Join(err, lost)
}

// bloomFiles returns where the bloom file of each rowset is.
func bloomFiles(dir string) (places []blockmanager.BlockLocation, err error) {
	s, err := oribi.Open(dir, &oribi.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	info, err := s.Info()
	if err = errors.Join(err, s.Close()); err != nil {
		return nil, err
	}
	o := blockmanager.Options{FS: vfs.OS, Dir: dir, ReadOnly: true}
	if _, err := hex.Decode(o.Instance[:], []byte(info.UUID)); err != nil {
		return nil, err
	}
	b, err := blockmanager.Open(o)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	blooms := map[block.ID]bool{}
	err = b.Rows(meta.TablePrefix(), func(_, value []byte) error {
		table, err := meta.DecodeTable(value)
		if err != nil {
			return err
		}
		return b.Rows(meta.RowSetPrefix(table.Number), func(_, value []byte) error {
			set, err := rowset.DecodeMetadata(value)
			if err == nil {
				blooms[set.Bloom] = true
			}
			return err
		})
	})
	for _, at := range b.BlockLocations() {
		if blooms[at.ID] {
			places = append(places, at)
		}
	}
	if err == nil && len(places) < 5 {
		err = fmt.Errorf("%d bloom files", len(places))
	}
	return places, err
}

// flipBytes changes the first byte of each block, or changes it back.
func flipBytes(dir string, places []blockmanager.BlockLocation) error {
	for _, at := range places {
		f, err := os.OpenFile(filepath.Join(dir, filepath.FromSlash(at.File)), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		var b [1]byte
		_, err = f.ReadAt(b[:], at.Offset)
		if err == nil {
			b[0] ^= 1
			_, err = f.WriteAt(b[:], at.Offset)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

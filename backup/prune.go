package backup

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/fault"
)

// Pruned is the result of Prune.
type Pruned struct {
	Removed    int   // backups
	FreedBytes int64 // of all objects
}

// Prune removes all backups but the newest keep, at least 1, and all objects that no other backup
// needs, also the objects of interrupted backups.
//
// Errors: ErrNotRepository; ErrLocked; ErrCorrupt if a manifest that remains is damaged, and then
// nothing is removed; ctx.Err(). After an error each backup that is still listed is whole.
func (r *Repository) Prune(ctx context.Context, keep int) (Pruned, error) {
	if keep < 1 {
		return Pruned{}, fmt.Errorf("backup: prune: keep %d, at least 1", keep)
	}
	p, err := r.prune(ctx, keep)
	return p, errorf("prune", err)
}

func (r *Repository) prune(ctx context.Context, keep int) (p Pruned, err error) {
	l, err := r.lock(ctx, true)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	list, err := r.backups(ctx)
	if err != nil {
		return p, err
	}
	old := list[:max(0, len(list)-keep)]
	kept := list[len(old):]
	blocks := 0
	kinds := map[uint64]bool{} // manifests that remain
	for i := range kept {
		kinds[kept[i].Number] = true
		if err := r.eachBlock(ctx, &kept[i], func(oribi.ImageBlock, hash) error { blocks++; return nil }); err != nil {
			return p, err
		}
	}
	for i := range old {
		if err := r.s.Delete(ctx, numbered(backupsPrefix, old[i].Number)); err != nil {
			return p, err
		}
		p.Removed++
		p.FreedBytes += summaryLen
	}
	err = r.s.List(ctx, manifestsPrefix, func(name string, n int64) error {
		number, ok := parseNumber(manifestsPrefix, name)
		if !ok {
			return fault.Corruptf("%s: not the name of a manifest", name)
		}
		if kinds[number] {
			return nil
		}
		p.FreedBytes += n
		return r.s.Delete(ctx, name)
	})
	if err != nil {
		return p, err
	}
	err = r.sweep(ctx, kept, blocks, &p)
	return p, err
}

// marksAtOnce is how many hashes a pass of sweep keeps in memory.
const marksAtOnce = 1 << 19

// sweep deletes the objects that no manifest lists. Each pass takes an equal share of the first
// bytes of hashes, of which there are 256.
func (r *Repository) sweep(ctx context.Context, kept []Backup, blocks int, p *Pruned) error {
	share := 256
	for share > 1 && blocks*share/256 > marksAtOnce {
		share /= 2
	}
	for first := 0; first < 256; first += share {
		needed := map[hash]bool{}
		for i := range kept {
			err := r.eachBlock(ctx, &kept[i], func(_ oribi.ImageBlock, h hash) error {
				if int(h[0]) >= first && int(h[0]) < first+share {
					needed[h] = true
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		for b := first; b < first+share; b++ {
			if err := r.sweepUnder(ctx, byte(b), needed, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweepUnder deletes the objects with hashes of a first byte that are not needed.
func (r *Repository) sweepUnder(ctx context.Context, first byte, needed map[hash]bool, p *Pruned) error {
	return r.s.List(ctx, objectsPrefix+hex.EncodeToString([]byte{first})+"/", func(name string, n int64) error {
		h, ok := parseObject(name)
		if !ok {
			return fault.Corruptf("%s: not the name of an object", name)
		}
		if needed[h] {
			return nil
		}
		if err := r.s.Delete(ctx, name); err != nil {
			return err
		}
		p.FreedBytes += n
		return nil
	})
}

package kudufs

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
)

// A superblock is the protobuf container file tablet-meta/<tablet ID> with one message, the table
// of contents of a tablet (tablet.proto); consensus-meta/<tablet ID> is one with the tablet's
// replicas (quorum.proto). The messages of their records are called:
//
//	kudu.tablet.TabletSuperBlockPB
//	kudu.consensus.ConsensusMetadataPB
//
// A superblock after the header and the description: length, checksum, message, checksum, where the
// message of a tablet begins with the IDs of table and tablet:
//
//	0a 20 <32 hex digits> 12 20 <32 hex digits> 18 ff ff ff ff ff ff ff ff ff 01 …
//
// Both files are replaced as a whole; see Replace. Source: tablet spec §11.
const (
	SuperblockKind = "kudu.tablet.TabletSuperBlockPB"     // file format: never change
	ConsensusKind  = "kudu.consensus.ConsensusMetadataPB" // file format: never change
	InstanceKind   = "kudu.InstanceMetadataPB"            // file format: never change
	DataKind       = "kudu.DirInstanceMetadataPB"         // file format: never change

	maxSuperblockBytes = 64 << 20 // 10,000 rowsets of 300 columns fit
	maxConsensusBytes  = 1 << 20
)

// Tablets returns the IDs of all tablets that have a superblock, in ascending order, and the names
// of other files next to the superblocks, such as lost+found, but not of temporary files, which a
// server removes.
func (d *Directory) Tablets() (ids, others []string, err error) {
	names, err := d.fs.List(d.superblocks)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		switch {
		case isTemporary(name):
		case IsTabletID(name):
			ids = append(ids, name)
		default:
			others = append(others, name)
		}
	}
	return ids, others, nil
}

// IsTabletID reports whether name may be the ID of a tablet: 32 hex digits.
func IsTabletID(name string) bool {
	return len(name) == 32 && strings.Trim(name, "0123456789abcdefABCDEF") == ""
}

// SuperblockPath returns the path of a tablet's superblock.
func (d *Directory) SuperblockPath(tablet string) string {
	return filepath.Join(d.superblocks, tablet)
}

// ConsensusPath returns the path of a tablet's consensus metadata.
func (d *Directory) ConsensusPath(tablet string) string {
	return filepath.Join(d.consensus, tablet)
}

// Superblock reads the superblock of a tablet. Errors: ErrCorrupt, also if there is no file; errors
// of the file system.
func (d *Directory) Superblock(tablet string) (*kudupb.TabletSuperBlockPB, error) {
	name := d.SuperblockPath(tablet)
	m := new(kudupb.TabletSuperBlockPB)
	if err := missing(name, readMessage(d.fs, name, maxSuperblockBytes, m)); err != nil {
		return nil, err
	}
	if err := checkSuperblock(tablet, m); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// checkSuperblock checks what a server checks when it loads a superblock.
func checkSuperblock(tablet string, m *kudupb.TabletSuperBlockPB) error {
	if id := string(m.TabletId); id != tablet {
		return fault.Corruptf("the superblock names tablet %q", id)
	}
	if m.Partition == nil {
		return fault.Corruptf("the superblock has no partition")
	}
	rowsets := make(map[uint64]bool, len(m.Rowsets))
	for _, r := range m.Rowsets {
		if rowsets[r.GetId()] {
			return fault.Corruptf("two rowsets have the ID %d", r.GetId())
		}
		rowsets[r.GetId()] = true
	}
	return nil
}

// Consensus reads the consensus metadata of a tablet. Errors: ErrCorrupt, also if there is no file;
// errors of the file system.
func (d *Directory) Consensus(tablet string) (*kudupb.ConsensusMetadataPB, error) {
	name := d.ConsensusPath(tablet)
	m := new(kudupb.ConsensusMetadataPB)
	if err := missing(name, readMessage(d.fs, name, maxConsensusBytes, m)); err != nil {
		return nil, err
	}
	return m, nil
}

// Voters returns the number of voters of a tablet's replicas.
func Voters(m *kudupb.ConsensusMetadataPB) (n int) {
	for _, p := range m.GetCommittedConfig().GetPeers() {
		if IsVoter(p) {
			n++
		}
	}
	return n
}

// IsVoter reports whether a replica is a voter.
func IsVoter(p *kudupb.RaftPeerPB) bool {
	return p.GetMemberType() == int32(kudupb.RaftMemberType_VOTER)
}

// LogBytes returns the size of the files of a tablet's log in bytes, with the files of an
// unfinished recovery.
func (d *Directory) LogBytes(tablet string) (total int64, err error) {
	dir, recovery := d.LogDirs(tablet)
	for _, dir := range []string{dir, recovery} {
		names, err := d.fs.List(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		for _, name := range names {
			n, err := d.sizeOf(filepath.Join(dir, name))
			if err != nil {
				return 0, err
			}
			total += n
		}
	}
	return total, nil
}

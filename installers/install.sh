#!/bin/sh
# Installs Jupiter for this user, into an environment of its own, or removes it again. It never needs root.
#
#   sh installers/install.sh                 from a checkout
#   curl -fsSL ADDRESS/install.sh | sh       from the index; options: | sh -s -- --dry-run
#
# It asks at the terminal alone, never on standard input, which may be this very script. Everything is in functions, and
# the last line calls them, so a download that breaks off does nothing. What it makes is in the manifest before it is made.
set -eu

PROGRAMS='jupiterd jupiterctl jupiter-tui'

usage() {
  cat <<'END'
Installs Jupiter on this machine, for this user: Linux and macOS, without root. Run it again to upgrade or repair.

  --from WHAT       a checkout, a wheel, an sdist, or `index`; default: the checkout this script lies in, else the index
  --extra NAME      cpu, nvidia, mac, or none (no engine: such a machine leads and collects); default: what was asked
                    for when it was installed, else by the hardware
  --cuda 12|13      with the extra nvidia, the CUDA that torch is built for; default: what was asked for before, else the
                    newest that the driver runs: 13 from driver 580 on, 12 from driver 525 on
  --python PROGRAM  the Python to build on, 3.11 or newer; default: the first one that will do
  --prefix FOLDER   install into FOLDER/share/jupiter and FOLDER/bin; default: ~/.local (and XDG_DATA_HOME)
  --sha256 HEX      install only a wheel with this hash
  --service         install the service too, so that jupiterd starts with the machine
  --no-service      don't ask about it
  --yes             ask nothing, and take the defaults
  --dry-run         show what would be done, and change nothing
  --uninstall       remove what was installed; models and all other state stay
  --purge           with --uninstall: remove those as well
  --help            show this

JUPITER_TORCH_INDEX names the index of torch builds for CPUs, JUPITER_CUDA_INDEX that of builds for CUDA 12; pip's own
settings (PIP_INDEX_URL, ...) hold as always. Where it is run again, a torch for CUDA that somebody put there stays.
END
}

main() {
  read_options "$@"
  choose_places
  trap 'end $?' EXIT
  if [ "$mode" = uninstall ]; then
    uninstall
    exit 0
  fi
  choose_source
  choose_extra
  choose_cuda
  choose_python
  check_links
  show_plan
  begin
  make_environment
  get_wheel
  install_packages
  provide_openblas
  check_programs
  link_programs
  run rm -f "$unfinished"
  offer_service
  show_next_step
}

# --- what was asked for ---------------------------------------------------------------------------------------------

read_options() {
  mode=install from='' extra='' cuda='' python='' prefix='' sha256='' service=ask yes='' dry='' purge=''
  scratch='' has_told=''
  while [ $# -gt 0 ]; do
    case $1 in
      --from | --extra | --cuda | --python | --prefix | --sha256)
        [ $# -ge 2 ] || fail 2 "$1 needs a value" 'install.sh --help'
        set_option "$1" "$2"
        shift
        ;;
      --*=*) set_option "${1%%=*}" "${1#*=}" ;;
      --service) service=yes ;;
      --no-service) service=no ;;
      --yes | -y) yes=1 ;;
      --dry-run) dry=1 ;;
      --uninstall) mode=uninstall ;;
      --purge) purge=1 ;;
      --help | -h) usage && exit 0 ;;
      *) fail 2 "there is no option $1" 'install.sh --help' ;;
    esac
    shift
  done
  if [ "$purge" ] && [ "$mode" = install ]; then
    fail 2 '--purge only goes with --uninstall' 'install.sh --help'
  fi
}

set_option() {
  [ "$2" ] || fail 2 "$1 needs a value" 'install.sh --help'
  case $1 in
    --from) from=$2 ;;
    --extra) extra=$2 ;;
    --cuda) cuda=$2 ;;
    --python) python=$2 ;;
    --prefix) prefix=$2 ;;
    --sha256) sha256=$(printf %s "$2" | tr 'A-F' 'a-f') ;;
    *) fail 2 "there is no option $1" 'install.sh --help' ;;
  esac
}

# Where everything goes. The environment is apart from the state: an upgrade may throw it away, a removal keeps the other.
choose_places() {
  [ "${HOME:-}" ] || fail 2 'HOME is not set, so there is no place to install to' 'HOME=/home/you sh install.sh'
  if [ "$prefix" ]; then
    case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
    # However it is written, with a slash at its end or without, it is one place.
    prefix=$(printf '%s\n' "$prefix" | sed -e 's|//*|/|g' -e 's|/\(\./\)*|/|g' -e 's|/\.\{0,1\}$||')
    root=$prefix/share/jupiter bin=$prefix/bin
  else
    root=$HOME/.local/share/jupiter bin=$HOME/.local/bin
    case ${XDG_DATA_HOME:-} in /*) root=$XDG_DATA_HOME/jupiter ;; esac
  fi
  venv=$root/environment manifest=$root/manifest unfinished=$root/unfinished log=$root/install.log
  system=$(uname -s) machine=$(uname -m)
  # The rule of jupiterd/locations.py.
  state=$HOME/.local/state/jupiter
  case ${XDG_STATE_HOME:-} in /*) state=$XDG_STATE_HOME/jupiter ;; esac
  if [ "$system" = Darwin ]; then state="$HOME/Library/Application Support/Jupiter"; fi
  state=${JUPITER_STATE_DIR:-$state}
  config=$HOME/.config
  case ${XDG_CONFIG_HOME:-} in /*) config=$XDG_CONFIG_HOME ;; esac
}

# --- what is to be installed, and on what -----------------------------------------------------------------------------

choose_source() {
  checkout=''
  if [ -z "$from" ]; then
    from=index
    if [ -f "$0" ]; then
      above=$(cd "$(dirname "$0")/.." && pwd)
      if is_checkout "$above"; then from=$above; fi
    fi
  fi
  if [ "$from" = index ]; then return; fi
  case $from in /*) ;; *) from=$PWD/$from ;; esac
  if [ -d "$from" ]; then
    is_checkout "$from" || fail 6 "$from is no checkout of Jupiter" 'name the folder with its pyproject.toml, or a wheel'
    checkout=$from
  elif [ -f "$from" ]; then
    case $from in *.whl | *.tar.gz) ;; *) fail 2 "$from is neither a wheel nor an sdist" 'install.sh --help' ;; esac
  else
    fail 6 "there is no $from" 'name a checkout, a wheel, an sdist, or index'
  fi
}

is_checkout() { grep -qs '^name = "jupiterd"$' "$1/pyproject.toml"; }

# An upgrade forgets no wish, and a driver that is broken for a day costs nobody gigabytes.
choose_extra() {
  found=''
  case $system in
    Darwin) found=$(extra_of_mac) ;;
    Linux) found=$(extra_of_linux) ;;
    *) fail 1 "Jupiter runs on Linux and macOS, and this is $system" 'on Windows, run this inside WSL2' ;;
  esac
  asked_extra=${extra:-$(recorded asked)}
  why="by the hardware: $found"
  if [ "$asked_extra" ]; then
    case $asked_extra in cpu | nvidia | mac | none) ;; *) fail 2 "there is no extra $extra" 'cpu, nvidia, mac or none' ;; esac
    why="as asked; by the hardware it would be $found"
    found=$asked_extra
  elif [ "$found" = cpu ] && [ "$(recorded extra)" = nvidia ]; then
    why='as it is here, though no GPU answers now; --extra cpu changes it'
    found=nvidia
  fi
  extra=$found
  case $extra in
    intel) fail 1 'this Mac has an Intel processor, for which neither torch nor MLX is made any more' \
      '--extra none makes it a member without an engine: it leads and collects' ;;
    musl) fail 1 'this system has musl instead of glibc, for which there is no torch' \
      'use a container with Debian or Ubuntu, or --extra none for a member without an engine' ;;
    unknown) fail 1 "there is no torch for $machine" '--extra none makes it a member without an engine' ;;
  esac
}

extra_of_mac() {
  # Under Rosetta an Apple chip says x86_64.
  if [ "$machine" = arm64 ] || [ "$(sysctl -n hw.optional.arm64 2>/dev/null)" = 1 ]; then echo mac; else echo intel; fi
}

extra_of_linux() {
  case $machine in x86_64 | aarch64 | arm64) ;; *) echo unknown && return ;; esac
  for loader in /lib/ld-musl-*; do
    if [ -e "$loader" ] && [ ! -e /lib64/ld-linux-x86-64.so.2 ] && [ ! -e /lib/ld-linux-aarch64.so.1 ]; then
      echo musl && return
    fi
  done
  if has_nvidia; then echo nvidia; else echo cpu; fi
}

# WSL keeps its nvidia-smi where no PATH leads; in some containers there is none at all.
has_nvidia() {
  for asked in nvidia-smi /usr/lib/wsl/lib/nvidia-smi; do
    if command -v "$asked" >/dev/null && limited "$asked" -L 2>/dev/null | grep -q '^GPU '; then return 0; fi
  done
  [ -e /proc/driver/nvidia/version ]
}

# A broken driver makes nvidia-smi hang.
limited() {
  if command -v timeout >/dev/null; then timeout 15 "$@"; else "$@"; fi
}

# NVIDIA's minimum of each: CUDA Compatibility, table 1, as in jupiterd/hardware/cuda_drivers.py. What people ask for now is
# refused where the driver can't run it.
choose_cuda() {
  case $cuda in '' | 12 | 13) ;; *) fail 2 "torch isn't built for CUDA $cuda" '--cuda 12 or --cuda 13' ;; esac
  if [ "$extra" != nvidia ]; then
    [ -z "$cuda" ] || fail 2 "--cuda goes with the extra nvidia, and this is $extra" 'install.sh --extra nvidia'
    return 0
  fi
  is_cuda_asked=$cuda asked_cuda=${cuda:-$(recorded cuda)} driver=$(driver_branch)
  cuda=${asked_cuda:-13} about_driver='' why_cuda='as asked'
  [ "$asked_cuda" ] || why_cuda='the newest'
  [ "$driver" ] || return 0
  if [ "$driver" -lt 525 ]; then
    about_driver="driver $driver is too old for torch's builds: install driver 580 for CUDA 13, or 525 for CUDA 12"
  elif [ "$driver" -lt 580 ]; then
    [ "$is_cuda_asked" != 13 ] || fail 1 "CUDA 13 needs driver 580 or newer, and driver $driver runs CUDA 12" \
      'install with --cuda 12, or a newer driver'
    if [ "$cuda" = 13 ]; then why_cuda="driver $driver runs CUDA 12; CUDA 13 needs driver 580" cuda=12; fi
  fi
}

# The branch of NVIDIA's driver, such as 535; nothing where that isn't known.
driver_branch() {
  for asked in nvidia-smi /usr/lib/wsl/lib/nvidia-smi; do
    command -v "$asked" >/dev/null || continue
    told=$(limited "$asked" --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1) || told=''
    told=${told%%.*}
    case $told in '' | *[!0-9]*) ;; *) echo "$told" && return ;; esac
  done
}

choose_python() {
  is_python_asked=$python
  if [ "$python" ]; then
    command -v "$python" >/dev/null || fail 6 "there is no Python $python" 'name one, such as --python python3.12'
    python=$(command -v "$python")
    wrong=$(complaint_about "$python") || fail 1 "$python won't do: ${wrong:-it is no Python 3 that runs}" "$(how_to_get_python)"
    return
  fi
  wrong=''
  for folder in '' /opt/homebrew/bin/ /usr/local/bin/ "$HOME/.local/bin/"; do
    for name in python3 python3.13 python3.12 python3.11 python3.14 python; do
      try_python "$folder$name" && return
    done
  done
  if command -v uv >/dev/null; then
    try_python "$(uv python find --no-python-downloads '>=3.11,<3.15' 2>/dev/null)" && return
  fi
  fail 1 "no Python from 3.11 to 3.14 was found${wrong:+; $wrong}" "$(how_to_get_python)"
}

try_python() {
  [ "$1" ] && command -v "$1" >/dev/null || return 1
  if is_apples_offer "$1"; then return 1; fi
  if told=$(complaint_about "$1" newest); then
    python=$(command -v "$1")
    return 0
  fi
  [ "$wrong" ] || wrong="$1: ${told:-it is no Python 3 that runs}"
  return 1
}

# On a Mac without Apple's developer tools this Python only opens a window that offers them.
is_apples_offer() {
  [ "$system" = Darwin ] && [ "$(command -v "$1")" = /usr/bin/python3 ] && ! xcode-select -p >/dev/null 2>&1
}

# Prints what is wrong with a Python and fails, or prints nothing. Old Pythons must be able to read what is asked here.
complaint_about() {
  "$1" -I - "${2:-}" "$system" "$(extra_of_mac)" <<'END' 2>/dev/null || return 1
import platform, sys
def say(what):
    print(what)
    sys.exit(1)
version = "%d.%d" % sys.version_info[:2]
if sys.version_info < (3, 11):
    say("it is Python " + version)
if sys.argv[1] and sys.version_info >= (3, 15):
    say("it is Python " + version + ", which is newer than what torch is made for")
if sys.argv[2] == "Darwin" and sys.argv[3] == "mac" and platform.machine() != "arm64":
    say("it is made for Intel processors")
try:
    import ensurepip, venv
except ImportError:
    say("Python " + version + " is here without its venv module")
END
}

how_to_get_python() {
  # Of systems whose own packages have an older one, such as Ubuntu 22.04 (3.10) and Debian 11 (3.9).
  case ${wrong:-} in
    *'it is Python 3.10' | *'it is Python 3.'[0-9])
      if ! command -v uv >/dev/null && ! command -v brew >/dev/null; then
        echo 'curl -LsSf https://astral.sh/uv/install.sh | sh && ~/.local/bin/uv python install 3.12, which needs no root; then run this again'
        return
      fi
      ;;
  esac
  for known in 'uv:uv python install 3.12' 'brew:brew install python@3.12' 'apt-get:sudo apt-get install python3 python3-venv' \
    'dnf:sudo dnf install python3.12' 'pacman:sudo pacman -S python' 'zypper:sudo zypper install python312'; do
    if command -v "${known%%:*}" >/dev/null; then
      echo "${known#*:}; or, without root, with uv (docs.astral.sh/uv): uv python install 3.12" && return
    fi
  done
  echo 'with uv (docs.astral.sh/uv): uv python install 3.12'
}

# Another installation's programs, such as pipx's, are not ours to replace.
check_links() {
  for program in $PROGRAMS; do
    link=$bin/$program
    if [ -e "$link" ] || [ -L "$link" ]; then
      is_ours "$link" || fail 7 "$link is there already, and this script didn't make it" \
        'uninstall the other Jupiter first, or choose another place with --prefix'
    fi
  done
}

is_ours() { [ -L "$1" ] && [ "$(readlink "$1")" = "$venv/bin/$(basename "$1")" ]; }

show_plan() {
  say "source       $from"
  say "Python       $python"
  say "extra        $extra ($why)"
  [ "$extra" != nvidia ] || say "CUDA         $cuda ($why_cuda)"
  [ -z "${about_driver:-}" ] || say "note: $about_driver"
  say "environment  $venv"
  say "programs     $bin"
  if [ "$extra" = cpu ] && grep -qsx 0x10de /sys/bus/pci/devices/*/vendor; then
    say 'note: there is an NVIDIA GPU here without a driver; install the driver and run this again to use it'
  fi
  if [ "$(id -u)" = 0 ] && [ "${SUDO_USER:-}" ]; then
    say "note: this installs for root; without sudo it would be for $SUDO_USER"
  fi
}

# --- installing -------------------------------------------------------------------------------------------------------

begin() {
  # What the caller's shell set for other environments must not lead pip astray.
  unset PYTHONHOME PYTHONPATH PIP_TARGET PIP_PREFIX PIP_CONSTRAINT PIP_REQUIRE_VIRTUALENV
  # Nor must modules that happen to lie in this folder.
  export PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PYTHONSAFEPATH=1
  still_runs=$(users_of_environment)
  if [ "$dry" ]; then
    scratch=$root/scratch
    return
  fi
  make_folder "$root"
  scratch=$root/scratch
  trap 'fail 130 "interrupted" "run it again to finish, or with --uninstall to remove what is there"' INT TERM HUP
  { rm -rf "$scratch" && mkdir "$scratch" && : >"$log"; } 2>/dev/null || \
    fail 1 "$root can't be written" 'make it yours, or choose another place with --prefix'
}

# Every error is told, also that of a step of which nobody expects any.
end() {
  if [ "$scratch" ] && [ ! "$dry" ]; then rm -rf "$scratch"; fi
  if [ "$1" = 0 ] || [ "$has_told" ]; then return 0; fi
  last=$(tail -n 1 "$log" 2>/dev/null) || last=''
  fail "$1" "a step failed${last:+: $last}" "$log has everything that was said; run this again to go on"
}

# An environment that an interrupted run left, or one for another extra or a Python that is gone, is made anew: nobody
# knows what is in it. What was downloaded is in pip's cache.
make_environment() {
  is_new=''
  if [ ! -e "$venv" ]; then
    is_new=1
  elif [ -e "$unfinished" ] || [ "$(recorded extra)" != "$extra" ] || ! works || is_of_other_python; then
    is_new=1
    say 'the environment that is here is unfinished, broken, or for another extra or Python: it is made anew'
    mark_unfinished
    run rm -rf "$venv"
  fi
  record folder "$venv"
  if [ "$(recorded extra)" != "$extra" ]; then unrecord extra; fi
  record extra "$extra"
  if [ "$(recorded asked)" != "$asked_extra" ]; then unrecord asked; fi
  [ -z "$asked_extra" ] || record asked "$asked_extra"
  if [ "$(recorded cuda)" != "${asked_cuda:-}" ]; then unrecord cuda; fi
  [ -z "${asked_cuda:-}" ] || record cuda "$asked_cuda"
  if [ "$is_new" ]; then
    say 'making the environment'
    mark_unfinished
    run "$python" -m venv "$venv" || broken 'the environment could not be made'
  fi
}

mark_unfinished() { [ "$dry" ] || : >"$unfinished"; }

works() { "$venv/bin/python" -c 'import pip' >/dev/null 2>&1; }

is_of_other_python() { [ "$is_python_asked" ] && [ "$(build_of "$python")" != "$(build_of "$venv/bin/python")" ]; }

build_of() { "$1" -I -c 'import sys; print(sys.version)' 2>/dev/null </dev/null || :; }

get_wheel() {
  case $from in
    index)
      say 'fetching jupiterd from the index'
      pip download --no-deps --only-binary jupiterd -d "$scratch" jupiterd || broken 'jupiterd could not be fetched'
      ;;
    *.whl) run cp "$from" "$scratch/" ;;
    *)
      say 'building the wheel'
      copy_checkout
      pip wheel --no-deps -w "$scratch" "$from" || broken 'the wheel could not be built'
      ;;
  esac
  if [ "$dry" ]; then
    wheel=jupiterd.whl
    return
  fi
  for wheel in "$scratch"/jupiterd-*.whl; do :; done
  [ -f "$wheel" ] || fail 1 "$from is no wheel of Jupiter" 'install.sh --help'
  hash=$("$venv/bin/python" -c 'import hashlib; print(hashlib.sha256(open(0, "rb").read()).hexdigest())' <"$wheel")
  say "sha256       $hash  $(basename "$wheel")"
  if [ "$sha256" ] && [ "$sha256" != "$hash" ]; then
    fail 5 "$(basename "$wheel") has not the hash that was given, so it isn't installed" 'get it again from its source'
  fi
}

# setuptools writes beside what it builds, and would take along what an older build left there.
copy_checkout() {
  [ "$checkout" ] || return 0
  run mkdir "$scratch/source"
  for part in jupiterd jupiter_tui config constraints.txt requirements pyproject.toml README.md LICENSE; do
    run cp -RP "$checkout/$part" "$scratch/source/"
  done
  from=$scratch/source
}

install_packages() {
  say 'installing, which takes some minutes the first time'
  pins=jupiterd/constraints.txt lock=jupiterd/requirements/$extra.txt
  if [ ! "$dry" ]; then
    run "$venv/bin/python" -m zipfile -e "$wheel" "$scratch/wheel" || broken "$(basename "$wheel") can't be unpacked"
    pins=$scratch/wheel/$pins lock=$scratch/wheel/$lock
  fi
  mark_unfinished
  install_torch
  # pip checks no hashes of constraints: what the wheel needs comes first, each file by its hash. torch isn't among it, as
  # people have one of their own, of an index of their own.
  pip install --no-compile --no-deps --require-hashes -r "$lock" || not_upgraded
  wanted=$wheel
  [ "$extra" = none ] || wanted="${wheel}[$extra]"
  pip install --no-compile -c "$pins" "$wanted" || not_upgraded
  # pip takes a wheel of a version that is there for the same, even if it isn't.
  [ "$is_new" ] || pip install --no-compile --no-deps --force-reinstall "$wheel" || \
    broken 'jupiterd could not be installed'
  compile_for_others
}

# Without a network, say. pip begins once it has everything, so an environment that was whole still is, and stays.
not_upgraded() {
  [ "$is_new" ] || rm -f "$unfinished"
  broken 'the packages could not be installed'
}

# Python compiles what it first imports, which takes less time than pip needs for all of it; but where others run what
# one user has installed, they may not write there.
compile_for_others() {
  [ ! "$prefix" ] || run "$venv/bin/python" -m compileall -q -j 0 "$venv/lib" || :
}

# The usual index's torch for Linux brings CUDA's libraries, of several GB. Only torch is asked for at the other index, so
# that nothing else comes from there.
install_torch() {
  if [ "$extra" = nvidia ]; then install_torch_for_cuda; fi
  [ "$extra" = cpu ] && [ "$system" = Linux ] || return 0
  version=$(pinned_torch)
  pip install --no-compile --no-deps --retries 1 --index-url "${JUPITER_TORCH_INDEX:-https://download.pytorch.org/whl/cpu}" \
    "torch${version:+==$version}" || say 'note: no torch for CPUs was found there; the usual one is taken, which is larger'
}

pinned_torch() { [ "$dry" ] || sed -n 's/^torch==//p' "$pins" 2>/dev/null || :; }

# The usual index has torch for CUDA 13. A torch for CUDA that somebody else put there stays: people have reasons for it.
install_torch_for_cuda() {
  version=$(pinned_torch) there=$(torch_that_is_there) is_wrong=''
  built_for=${there##* }
  if [ "$there" ] && [ "$built_for" != "$cuda" ]; then
    if [ "$is_cuda_asked" ] || [ "$built_for" -gt "$cuda" ]; then is_wrong=1; fi
  fi
  if [ "$there" ] && [ ! "$is_wrong" ] && is_theirs "${there%%[+ ]*}"; then
    say "torch        ${there% *}, which was here, stays"
    grep -v '^torch==' "$pins" >"$scratch/constraints.txt" 2>/dev/null || :
    pins=$scratch/constraints.txt
    return 0
  fi
  unrecord torch
  record torch "$version"
  # pip takes a version that is there for the same, whatever it is built for.
  set -- --no-compile
  [ ! "$is_wrong" ] || set -- "$@" --force-reinstall
  [ "$cuda" = 13 ] || set -- "$@" --index-url "${JUPITER_CUDA_INDEX:-https://download.pytorch.org/whl/cu126}"
  if [ "$cuda" = 12 ] || [ "$is_wrong" ]; then pip install "$@" "torch${version:+==$version}" || not_upgraded; fi
}

# What this script put there goes on with its pins.
is_theirs() { [ "$1" != "$version" ] && [ "$1" != "$(recorded torch)" ]; }

# Prints the version of the environment's torch and the major version of CUDA that it is built for, if Jupiter runs on it.
torch_that_is_there() {
  if [ "$dry" ] || [ "$is_new" ]; then return 0; fi
  "$venv/bin/python" -P - 2>/dev/null <<'END' || :
import re, runpy
from importlib.util import find_spec
from pathlib import Path
known = runpy.run_path(str(Path(find_spec("torch").origin).parent / "version.py"))
version, cuda = known["__version__"], known["cuda"].partition(".")[0]
if (2, 11) <= tuple(map(int, re.match(r"(\d+)\.(\d+)", version).groups())) < (3, 0):
    print(version, int(cuda))
END
}

# MLX on Linux is slow without OpenBLAS. What can't be done is said.
provide_openblas() {
  [ "$extra" = cpu ] && [ "$system" = Linux ] || return 0
  show "$venv/bin/python" -m jupiterd.processes.openblas --without-root || :
}

check_programs() {
  if [ "$dry" ]; then return; fi
  for program in $PROGRAMS; do
    "$venv/bin/$program" --help </dev/null >>"$log" 2>&1 || broken "$program doesn't run"
  done
}

link_programs() {
  say "linking $PROGRAMS into $bin"
  make_folder "$bin"
  for program in $PROGRAMS; do
    record link "$bin/$program"
    run ln -sf "$venv/bin/$program" "$bin/$program"
  done
}

# On a Mac it is the machine's service, which jupiterd says how to install with sudo.
offer_service() {
  if [ "$service" = no ] || [ "$(services)" ]; then return 0; fi
  [ "$service" = yes ] || ask 'Shall jupiterd start with the machine, as a service?' || return 0
  say 'installing the service'
  show "$venv/bin/jupiterd" service install || [ "$service" != yes ] || give_up
}

# Prints whose services (user, system) start the jupiterd that was installed here, whoever has installed them, and even
# where it doesn't run any more.
services() {
  for known in "user:$config/systemd/user/jupiterd.service" system:/etc/systemd/system/jupiterd.service \
    "user:$HOME/Library/LaunchAgents/jupiter.jupiterd.plist" system:/Library/LaunchDaemons/jupiter.jupiterd.plist; do
    if grep -qsF -e "$venv/bin/" -e "$bin/jupiterd" "${known#*:}"; then echo "${known%%:*}"; fi
  done
}

show_next_step() {
  if [ "$dry" ]; then
    say 'nothing was changed'
    return
  fi
  say ''
  say "$("$venv/bin/jupiterd" --version) is installed."
  case $still_runs in
    '') ;;
    *' '*) say "note: processes $still_runs still run what was here before; end them and start them again" ;;
    *) say "note: process $still_runs still runs what was here before; $(how_to_restart)" ;;
  esac
  case :$PATH: in
    *":$bin:"*) ;;
    *) show_path_line ;;
  esac
  [ "$(services)" ] || say '  jupiterd             starts it; do the same on each of your machines'
  say '  jupiterctl status    shows who is here, in another shell'
  say '  jupiter-tui          is the dashboard'
}

how_to_restart() {
  case $system-$(services | head -n 1) in
    *-) echo 'end it and start it again' ;;
    Darwin-user) echo "start it again: launchctl kickstart -k gui/$(id -u)/jupiter.jupiterd" ;;
    Darwin-system) echo 'start it again: sudo launchctl kickstart -k system/jupiter.jupiterd' ;;
    *-user) echo 'start it again: systemctl --user restart jupiterd' ;;
    *-system) echo 'start it again: sudo systemctl restart jupiterd' ;;
  esac
}

show_path_line() {
  say "note: $bin is not on your PATH. This line puts it there, from the next login on:"
  case ${SHELL:-} in
    */fish) say "  fish_add_path '$bin'" ;;
    */zsh) say "  echo 'export PATH=\"$bin:\$PATH\"' >> ~/.zprofile" ;;
    *) say "  echo 'export PATH=\"$bin:\$PATH\"' >> ~/.profile" ;;
  esac
}

# --- removing ---------------------------------------------------------------------------------------------------------

uninstall() {
  [ -d "$root" ] || log=/dev/null
  if [ -f "$manifest" ]; then
    remove_services
    users=$(users_of_environment)
    if [ "$users" ] && [ ! "$dry" ]; then
      fail 7 "Jupiter is running here ($(in_words "$users"))" "kill $users, and run this again"
    fi
    remove link
    remove folder
    remove_rest
  else
    say "Jupiter isn't installed in $root"
  fi
  if [ "$purge" ]; then
    purge_state
  elif [ -d "$state" ]; then
    say "kept: $state (key, ledger, models); --uninstall --purge removes it"
  fi
  [ ! "$dry" ] || say 'nothing was changed'
}

remove_services() {
  for whose in $(services); do
    say "removing the service ($whose)"
    "$venv/bin/jupiterd" --version >/dev/null 2>&1 </dev/null || \
      fail 1 'a service starts this jupiterd, which is broken and so cannot remove it' \
        'mend it first: run this without --uninstall, then with it'
    show "$venv/bin/jupiterd" service uninstall "--$whose" || give_up
  done
}

# Prints the processes that run what was installed here, in one line, without those that they have started themselves.
users_of_environment() {
  ps -A -ww -o pid= -o ppid= -o args= 2>/dev/null | path=$venv/bin/ awk '
    index($0, ENVIRON["path"]) { order[++count] = $1; parent[$1] = $2 }
    END { for (i = 1; i <= count; i++) if (!(parent[order[i]] in parent)) { printf "%s%s", gap, order[i]; gap = " " } }
  ' || :
}

in_words() {
  case $1 in *' '*) echo "processes $1" ;; *) echo "process $1" ;; esac
}

remove() {
  recorded "$1" | while read -r path; do
    if [ "$1" = link ] && ! is_ours "$path"; then continue; fi
    if [ -e "$path" ] || [ -L "$path" ]; then
      say "removing $path"
      run rm -rf "$path"
    fi
  done
}

# Of the folders only those that were made here, the deepest first, and only when nothing else is in them.
remove_rest() {
  [ ! "$dry" ] || return 0
  made=$(recorded made | sort -r)
  rm -rf "$manifest" "$unfinished" "$log" "$root/scratch"
  printf '%s\n' "$made" | while read -r path; do
    if [ -d "$path" ]; then rmdir "$path" 2>/dev/null || :; fi
  done
}

purge_state() {
  [ -d "$state" ] || return 0
  [ -e "$state/lock" ] || fail 5 "$state doesn't look like a state folder of Jupiter" 'look into it, and remove it yourself'
  if [ ! "$yes" ] && [ ! "$dry" ]; then
    has_terminal || fail 5 "$state holds models, and their removal must be confirmed" 'add --yes'
    ask "Remove $state with its key, ledger and models, for good?" || return 0
  fi
  say "removing $state"
  run rm -rf "$state"
}

# --- words, and what is remembered ------------------------------------------------------------------------------------

say() { printf '%s\n' "$1"; }

fail() {
  has_told=1
  printf 'install: error: %s\n\nhint: %s\n' "$2" "$3" >&2
  exit "$1"
}

# After a program that has told its own error.
give_up() {
  has_told=1
  exit 1
}

# For a command that failed: its last words are in the log.
broken() {
  last=$(grep -i 'error:' "$log" 2>/dev/null | tail -n 1)
  fail 1 "$1${last:+: $last}" "$log has everything that was said; run this again to go on"
}

# Asks at the terminal; without one, or with --yes, the answer is no.
ask() {
  if [ "$yes" ] || [ "$dry" ] || ! has_terminal; then return 1; fi
  printf '%s [y/N] ' "$1" >/dev/tty
  read -r answer </dev/tty || return 1
  case $answer in y | Y | yes | Yes) ;; *) return 1 ;; esac
}

has_terminal() { [ -t 1 ] && (: </dev/tty) 2>/dev/null; }

# Does what it is given, or says that it would. What a program says goes into the log; with `show` it is shown.
run() {
  if [ "$dry" ]; then show "$@"; else "$@" </dev/null >>"$log" 2>&1; fi
}

show() {
  if [ ! "$dry" ]; then
    "$@" </dev/null
    return
  fi
  printf '  would run:'
  printf ' %s' "$@"
  printf '\n'
}

# Downloads take their time: whoever looks on sees how far they are.
pip() {
  if [ -t 1 ]; then show "$venv/bin/python" -m pip "$@" 2>>"$log"; else run "$venv/bin/python" -m pip "$@"; fi
}

# The manifest: KIND<tab>VALUE in each line.
record() {
  if [ "$dry" ] || grep -qsxF "$1	$2" "$manifest"; then return 0; fi
  printf '%s\t%s\n' "$1" "$2" >>"$manifest"
}

unrecord() {
  if [ "$dry" ] || [ ! -f "$manifest" ]; then return 0; fi
  sed "/^$1	/d" "$manifest" >"$manifest.new"
  mv "$manifest.new" "$manifest"
}

recorded() { sed -n "s/^$1	//p" "$manifest" 2>/dev/null || :; }

# Makes a folder and those above it, and remembers which weren't there.
make_folder() {
  if [ "$dry" ]; then return; fi
  made='' folder=$1
  while [ ! -d "$folder" ]; do
    made="$folder
$made"
    folder=$(dirname "$folder")
  done
  mkdir -p "$1" 2>/dev/null || fail 1 "the folder $1 can't be made" 'choose another place with --prefix'
  printf '%s' "$made" | while read -r path; do record made "$path"; done
}

main "$@"

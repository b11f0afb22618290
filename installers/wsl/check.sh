#!/bin/sh
# Says whether other machines can reach a jupiterd in this WSL, and how to mend it; changes nothing.
#
#   installers/wsl/check.sh            all of it
#   installers/wsl/check.sh --peer     only the command that starts jupiterd here
#
# It needs no Jupiter; where that is installed, `jupiterctl doctor` (check wsl) looks at the same things.
set -eu

port=${JUPITER_PORT:-47470}
root=${WSL_CHECK_ROOT:-} # where the files of the system lie; for tests
creator='{40E0AC32-46A5-438A-A0B2-2B479E8F2E90}' # that of WSL's virtual machine
trouble=0

main() {
  kernel=$(cat "$root/proc/sys/kernel/osrelease" 2>/dev/null || echo unknown)
  case $kernel in
    *[Mm]icrosoft*) ;;
    *) say ok "this isn't WSL (kernel $kernel): nothing to do here" && exit 0 ;;
  esac
  mode=$(network_mode)
  if [ "${1:-}" != --peer ]; then
    check_version
    check_mode
    check_rule
    check_systemd
    check_gpu
    check_folder
  fi
  show_start
  exit "$trouble"
}

network_mode() {
  wslinfo --networking-mode 2>/dev/null | tr -d '\r' || true
}

check_version() {
  case $kernel in
    *microsoft-standard* | *WSL2*) say ok "this is WSL 2 (kernel $kernel)" ;;
    *) bad "this is WSL 1, which Jupiter doesn't know" 'wsl --set-version DISTRO 2' ;;
  esac
}

check_mode() {
  if [ "$mode" = mirrored ]; then
    say ok "WSL's network is mirrored"
  else
    bad "WSL's network mode is ${mode:-unknown, most likely nat}: no other machine can get in" \
      'write networkingMode=mirrored below [wsl2] in %UserProfile%\.wslconfig (Windows 11 22H2 or newer), then run in
         Windows: wsl --shutdown; or let installers\wsl\setup.ps1 -Apply do it'
  fi
}

# Windows' own firewall comes before WSL's network. Anybody may read its rules.
check_rule() {
  if ! shell=$(powershell); then
    say note "whether Windows' firewall lets TCP port $port in can't be asked from here: look in Windows with
         Get-NetFirewallHyperVRule -VMCreatorId '$creator'"
    return
  fi
  query="Get-NetFirewallHyperVRule -VMCreatorId '$creator' | Where-Object { \$_.Direction -eq 'Inbound' -and
    \$_.Action -eq 'Allow' -and \$_.Enabled -eq 'True' } | ForEach-Object { \$_.LocalPorts }"
  if allowed "$("$shell" -NoProfile -Command "$query" 2>/dev/null | tr -d '\r')"; then
    say ok "Windows' firewall lets TCP port $port in"
  else
    bad "Windows' firewall has no rule that lets TCP port $port in" \
      "in an administrator's PowerShell: New-NetFirewallHyperVRule -Name Jupiter -DisplayName Jupiter -Direction Inbound
         -VMCreatorId '$creator' -Protocol TCP -LocalPorts $port,32768-60999
         or let installers\\wsl\\setup.ps1 -Apply do it"
  fi
}

powershell() {
  for shell in powershell.exe "$root/mnt/c/Windows/System32/WindowsPowerShell/v1.0/powershell.exe"; do
    if command -v "$shell"; then return 0; fi
  done
  return 1
}

# Whether one of these ports or ranges is ours; no port at all is every port.
allowed() {
  for told in $1; do
    case $told in
      Any | "$port") return 0 ;;
      *-*) if [ "${told%-*}" -le "$port" ] 2>/dev/null && [ "$port" -le "${told#*-}" ] 2>/dev/null; then return 0; fi ;;
    esac
  done
  return 1
}

check_systemd() {
  if [ -d "$root/run/systemd/system" ]; then
    say ok 'systemd runs: jupiterd can be a service'
  else
    say note "WSL without systemd: jupiterd can't be a service; if it shall be one, write systemd=true below [boot] in
         /etc/wsl.conf"
  fi
}

check_gpu() {
  smi=$root/usr/lib/wsl/lib/nvidia-smi
  if [ ! -e "$smi" ]; then
    say note "no NVIDIA GPU is seen from here; if there is one, install NVIDIA's driver in Windows"
  elif "$smi" -L >/dev/null 2>&1; then
    say ok "NVIDIA's driver answers: $("$smi" -L | head -n 1)"
  else
    bad "NVIDIA's driver is there and doesn't answer" "update NVIDIA's driver in Windows, then: wsl --shutdown"
  fi
}

check_folder() {
  case ${JUPITER_STATE_DIR:-$HOME} in
    /mnt/[a-z]/*) bad "the state folder lies on Windows' disk, which is many times slower from here" \
      'choose a folder below your home: jupiterd --state-dir ~/jupiter' ;;
  esac
}

# Multicast isn't to be relied on in mirrored mode; a machine that is named is found all the same.
show_start() {
  if [ "$mode" = mirrored ]; then
    say start "jupiterd; if no other machine is found, name one: jupiterd --peer HOST"
  else
    say start "jupiterd --peer HOST, where HOST is another machine: this one can call it, and it can't call back, so mend
         the mode before you train together"
  fi
}

say() {
  printf '%-5s  %s\n' "$1" "$2"
}

bad() {
  say bad "$1"
  say fix "$2"
  trouble=8
}

main "$@"

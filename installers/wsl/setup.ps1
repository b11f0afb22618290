<#
.SYNOPSIS
Lets other machines reach a jupiterd in WSL: mirrored networking and a rule in the Hyper-V firewall.

.DESCRIPTION
Without -Apply it only shows what is missing. Windows 11 22H2 or newer. Run it in an administrator's PowerShell:

    powershell -ExecutionPolicy Bypass -File installers\wsl\setup.ps1
    powershell -ExecutionPolicy Bypass -File installers\wsl\setup.ps1 -Apply

Undo: -Remove takes the rule away again; the older .wslconfig lies beside the new one as .wslconfig.before-jupiter.
#>
[CmdletBinding()]
param(
    [switch]$Apply,
    [switch]$Remove,
    # Where jupiterd listens.
    [ValidateRange(1, 65535)][int]$Port = 47470,
    # The ports that Linux chooses from for gangs.
    [string]$GangPorts = '32768-60999',
    # Who may come in: addresses or subnets, such as 192.168.1.0/24; everybody unless told.
    [string[]]$From = @()
)

Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'

$RuleName = 'Jupiter'
$WslCreatorId = '{40E0AC32-46A5-438A-A0B2-2B479E8F2E90}'
$ConfigPath = Join-Path $env:UserProfile '.wslconfig'

function Test-Administrator {
    $identity = [Security.Principal.WindowsIdentity]::GetCurrent()
    $principal = [Security.Principal.WindowsPrincipal]::new($identity)
    return $principal.IsInRole([Security.Principal.WindowsBuiltInRole]::Administrator)
}

# The lines of .wslconfig with networkingMode=mirrored below [wsl2]; everything else stays as it is.
function Get-MirroredConfig([string[]]$Lines) {
    $kept = @($Lines | Where-Object { $_ -notmatch '^\s*networkingMode\s*=' })
    $section = -1
    for ($index = 0; $index -lt $kept.Count; $index++) {
        if ($kept[$index] -match '^\s*\[wsl2\]\s*$') { $section = $index; break }
    }
    if ($section -lt 0) { return @($kept) + @('[wsl2]', 'networkingMode=mirrored') }
    $after = @($kept | Select-Object -Skip ($section + 1))
    return @($kept[0..$section]) + @('networkingMode=mirrored') + $after
}

function Set-Mirrored {
    $before = @()
    if (Test-Path $ConfigPath) { $before = @([IO.File]::ReadAllLines($ConfigPath)) }
    if ($before -match '^\s*networkingMode\s*=\s*mirrored\s*$') {
        Write-Output 'ok     the network is set to mirrored'
        return
    }
    if (-not $Apply) {
        Write-Output "would  write networkingMode=mirrored below [wsl2] in $ConfigPath"
        return
    }
    if (Test-Path $ConfigPath) { Copy-Item $ConfigPath "$ConfigPath.before-jupiter" -Force }
    # UTF-8 without a mark, whatever PowerShell this is: names of users and folders aren't always ASCII.
    [IO.File]::WriteAllLines($ConfigPath, [string[]](Get-MirroredConfig $before))
    Write-Output "done   networkingMode=mirrored is in $ConfigPath; now run: wsl --shutdown"
}

function Set-Rule {
    if (Get-NetFirewallHyperVRule -Name $RuleName -ErrorAction SilentlyContinue) {
        Write-Output "ok     the firewall has the rule $RuleName, as it was made; for other ports or addresses: -Remove first"
        return
    }
    $rule = @{
        Name        = $RuleName
        DisplayName = $RuleName
        Direction   = 'Inbound'
        Action      = 'Allow'
        VMCreatorId = $WslCreatorId
        Protocol    = 'TCP'
        LocalPorts  = @("$Port", $GangPorts)
    }
    if ($From.Count -gt 0) { $rule.RemoteAddresses = $From }
    if (-not $Apply) {
        Write-Output "would  New-NetFirewallHyperVRule -Name $RuleName ... -LocalPorts $Port,$GangPorts"
        return
    }
    New-NetFirewallHyperVRule @rule | Out-Null
    Write-Output "done   the firewall lets TCP ports $Port and $GangPorts into WSL"
}

if (-not (Get-Command New-NetFirewallHyperVRule -ErrorAction SilentlyContinue)) {
    Write-Error 'this Windows has no Hyper-V firewall: mirrored networking needs Windows 11 22H2 or newer'
}
if (($Apply -or $Remove) -and -not (Test-Administrator)) {
    Write-Error 'the firewall can be changed by an administrator alone: start PowerShell as administrator'
}
if ($Remove) {
    Remove-NetFirewallHyperVRule -Name $RuleName
    Write-Output "done   the rule $RuleName is gone"
} else {
    Set-Mirrored
    Set-Rule
}
